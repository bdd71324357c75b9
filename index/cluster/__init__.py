"""Work shared by several machines: a Dask cluster, its tasks, and files that all machines can reach."""
