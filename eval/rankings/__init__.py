"""Rankings of photos, made here or elsewhere: files, scores, curves, a page."""
