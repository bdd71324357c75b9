"""What a photo's file says: EXIF, IPTC, XMP, dates and places, as clean text; opens no pixel and no database."""
