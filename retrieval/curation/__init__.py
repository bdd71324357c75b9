"""Organising photos: albums, metadata, copies, uploads, shared links and the bin."""
