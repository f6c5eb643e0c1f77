"""The library the rest stands on; needs neither root nor Mininet nor matplotlib."""
