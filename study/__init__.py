"""From a scenario to findings: the kinds of study, and what they share."""
