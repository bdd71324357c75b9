"""Queries that show only printed text, in a collection that masks text."""

import numpy as np

from retrieval.search.answers import QueryImage
from retrieval.search.query import PhotoUnusable, Query


class TextAloneError(PhotoUnusable):
    """A box, or a photo from elsewhere, shows nothing but text."""


def refuse_text_alone(query: Query, query_image: QueryImage) -> None:
    """Raise TextAloneError if a box, or a photo from elsewhere, shows nothing but text, which is left out."""
    if len(query.views[0].words) or query.source is None or (query_image.box is None and query_image.row is not None):
        return
    photo, box, _ = query.source.read()
    if photo.text is None:
        return
    if box is None:
        if photo.text.any():
            raise TextAloneError("There is only printed text in the photo, which this collection ignores.")
        return
    (x0, y0), (x1, y1) = np.rint(photo.to_working(np.array(box).reshape(2, 2))).astype(int).tolist()
    if photo.text[y0 : y1 + 1, x0 : x1 + 1].any():
        raise TextAloneError(
            "There is only printed text in the box, which this collection ignores: draw it round a picture."
        )
