"""Figures of single cells: bars in groups, maps of squares, and the sufficient window of each."""
