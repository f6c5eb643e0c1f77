"""Figures by random loss: what a larger window gains beyond the lossless network."""
