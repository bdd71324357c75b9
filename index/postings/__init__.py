"""Compressed lists of numbers: the words of images, and the images of words."""
