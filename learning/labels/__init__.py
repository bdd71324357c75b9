"""Which photos of a collection show the same: ground truth, folders, tables, or verified by geometry."""
