"""Labelled patches as every learner takes them: the PhotoTour format, sources, rows of pairs, distorted copies."""
