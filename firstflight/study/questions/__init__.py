"""A question by flags, as a scenario."""
