"""The routes of the web application, a file a subject."""
