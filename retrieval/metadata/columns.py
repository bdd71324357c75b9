"""Names of imported columns with a meaning to other modules."""

MANIFEST, CANVAS, SIZE = "IIIF manifest", "IIIF canvas", "IIIF size"
"""Identifiers of a page that came by IIIF, and the size of its canvas, such as ``3000x4000``."""

ORDER = "Page order"
"""The place of a page in its book, from 1."""

ITEM, PAGE = "Item", "Page"
"""The book of a page, and what the page is called in it."""

PLACES = (
    *("Place", "Place of publication", "Publication place", "Place of printing"),
    *("Ort", "Druckort", "Erscheinungsort", "Verlagsort", "Lieu", "Lieu de publication", "Lieu d'édition"),
    *("Lugar", "Lugar de publicación", "Luogo", "Luogo di pubblicazione", "Plaats", "Plaats van uitgave"),
)
"""Columns that say where a book was made, the first counts."""

ATTRIBUTION, RIGHTS, SOURCE = "Attribution", "Rights", "Source"
"""Whom a photo is owed to, what may be done with it (an address, as a rule), and the page that shows it elsewhere."""
