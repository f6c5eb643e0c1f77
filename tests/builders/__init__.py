"""Builders of what several tests need."""
