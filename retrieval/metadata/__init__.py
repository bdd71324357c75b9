"""Metadata of a photo's file: EXIF, IPTC, XMP, dates and places, as clean text; without pixels and database."""
