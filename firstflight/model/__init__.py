"""A model of Linux TCP on a path that loses nothing but what overflows its queue."""
