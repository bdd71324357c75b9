"""Downloads: files of photos, and contact sheets."""
