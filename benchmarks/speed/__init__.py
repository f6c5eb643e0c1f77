"""How long things take, and what they take: time, memory, processor."""
