"""What fetches show: buckets, cells, maps, steps, and their sentences."""
