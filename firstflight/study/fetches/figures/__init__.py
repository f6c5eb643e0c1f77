"""What fetches show: buckets, cells, bars, and their sentences."""
