"""The web application: browse a collection, draw a box, see what matches and why."""
