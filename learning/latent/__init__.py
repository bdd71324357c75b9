"""Simonyan14, section 9, without labels: the alternation, its two problems, the study, the verdict."""
