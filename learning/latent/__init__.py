"""Simonyan14, section 9, without labels: the alternation, its two problems, the models, the verdict."""
