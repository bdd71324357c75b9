"""Work that several machines share: a Dask cluster, its tasks, and files that all of them reach."""
