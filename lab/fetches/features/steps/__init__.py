"""Figures of single cells over one quantity, lines or squares, with claims on their trials."""
