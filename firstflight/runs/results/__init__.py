"""What is stored: one record for each trial, and where a run comes from."""
