"""What the programs at the top level do: their flags, and who measures."""
