"""Rankings of photos, by Cairn or other programs: files, scores, curves, a page."""
