"""Names of imported columns that mean something to more than the table they come from."""

MANIFEST, CANVAS, SIZE = "IIIF manifest", "IIIF canvas", "IIIF size"
"""Identifiers of a page that came by IIIF, and the size of its canvas, such as ``3000x4000``."""

ORDER = "Page order"
"""The place of a page in its book, from 1."""

ATTRIBUTION, RIGHTS, SOURCE = "Attribution", "Rights", "Source"
"""Whom a photo is owed to, what may be done with it (an address, as a rule), and the page that shows it elsewhere."""
