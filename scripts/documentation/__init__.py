"""What writes the generated pages of the documentation, and what its site needs beside Sphinx and its extensions."""
