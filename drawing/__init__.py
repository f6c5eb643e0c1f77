"""The only room that imports matplotlib; figures is its door."""
