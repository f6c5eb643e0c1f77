"""Pages of many objects: scenarios of kind "page"."""
