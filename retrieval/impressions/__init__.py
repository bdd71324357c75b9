"""Impressions of one block or plate in one frame: what one lacks, and whether one block has printed both."""
