"""The machines of a Dask cluster as an engine: the way there, the machine itself, batches to it."""
