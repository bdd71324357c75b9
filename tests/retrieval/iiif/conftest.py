from collections.abc import Iterator

import pytest

from tests.support.iiif_server import IiifServer, serve_iiif


@pytest.fixture
def server() -> Iterator[IiifServer]:
    with serve_iiif() as served:
        yield served
