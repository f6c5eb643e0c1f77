"""A question by flags, written as a scenario."""
