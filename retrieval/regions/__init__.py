"""Geometry in one image: scale space, detectors, affine shape, patches; arrays in, arrays out."""
