"""Labelled patches made from photos: detect, correspond, cut, split."""
