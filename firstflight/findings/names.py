"""Names that no figure may have, since every run may have a drawing of this name."""

ON_THE_WIRE = "on_the_wire"  # the drawing of the packets of the run's kept captures
