"""Figures of fetches: their cells and bars, charts, tables and sentences."""
