"""A model of Linux TCP on a path without losses: every segment, acknowledgement and timer."""
