"""What is broken on purpose: hostile inputs, strikes, changed code."""
