"""How much of a time that somebody observed is the window's, and what else could be the rest."""
