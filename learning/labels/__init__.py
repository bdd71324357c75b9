"""Labels of photos that show the same object: ground truth, folders, tables, or verified by geometry."""
