"""Joins the workloads: kinds of scenarios, and questions that no figure of one workload answers."""
