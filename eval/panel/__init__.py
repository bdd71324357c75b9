"""A panel of sets for judging changes of searching by kind of photo, with each scene counted once."""
