"""Names of what every run may show beside its figures; no figure has one of them."""

ON_THE_WIRE = "on_the_wire"  # the drawing of its timelines
SENTENCES = "sentences"  # the finding of what its scenario states
