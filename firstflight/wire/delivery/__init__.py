"""What a path did with each packet, against what its qdiscs have to do with it."""
