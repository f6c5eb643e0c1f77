"""Compares the project with others: the model, a stock kernel, containers, public experiments."""
