"""How results are shown: HTML that stands by itself, for notebooks, and figures by matplotlib."""
