"""What may be requested: quantities with their units and ranges, and the files that hold them."""
