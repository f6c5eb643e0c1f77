"""Names of what every run may show next to its figures. No figure may have one of these names."""

ON_THE_WIRE = "on_the_wire"  # the drawing of the run's timelines
