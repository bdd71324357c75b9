"""Options that are declared once, and what the faces of the program make of them."""
