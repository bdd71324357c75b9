"""Labelled patches for all learners: the PhotoTour format, sources, rows of pairs, distorted copies."""
