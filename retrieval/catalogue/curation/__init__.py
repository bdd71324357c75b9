"""Decisions on photos, as rows: albums, hidden photos, pairs that are no match, saved searches."""
