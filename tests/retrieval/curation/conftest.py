"""A small catalogue of photos that nobody has decided about yet."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers

PHOTOS = 8


def with_photos(address: str, photos: int = PHOTOS) -> Catalogue:
    """A catalogue at an address, with photos numbered from 0."""
    catalogue = Catalogue.open(address, create=True)
    first = catalogue.write(reserve_numbers, photos)
    rows = [ImageRow(number=first + i, path=f"/{i}.jpg", position=i) for i in range(photos)]
    values: dict[str, Any] = {"images": photos, "features": 0, "bytes": 0}
    segment = SegmentRow(folder="1", vocabulary_fingerprint="v", descriptor_fingerprint="d", **values)
    catalogue.write(commit_segment, segment, rows)
    return catalogue


@pytest.fixture(params=["sqlite", "postgresql"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Catalogue:
    """A catalogue with photos, in a file and in a server."""
    if request.param == "postgresql":
        new_address: Callable[[], str] = request.getfixturevalue("postgresql")
        return with_photos(new_address())
    return with_photos(f"sqlite:///{tmp_path}/catalogue.sqlite")
