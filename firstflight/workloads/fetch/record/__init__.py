"""What was observed of a fetch: the evidence of its packets and reports, and its record."""
