"""What the documentation site needs beside Sphinx and its extensions."""
