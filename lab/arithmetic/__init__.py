"""What a publication prints, held against itself: scenarios of kind "arithmetic"."""
