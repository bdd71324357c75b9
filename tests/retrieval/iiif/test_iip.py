"""Pages that a real image server gives: IIPImage, which bounds sizes, and whose connections are cut."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cairn
from retrieval.iiif.fetching import FetchPolicy
from tests.retrieval.iiif.test_downloads import _fetch, _files
from tests.retrieval.iiif.test_pictures import _picture
from tests.support.iip_server import IipServer, needs_iip, serve_iip

pytestmark = needs_iip

WIDTH, HEIGHT, LARGEST = 500, 700, 300


@pytest.fixture(scope="module")
def iip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IipServer]:
    with serve_iip(tmp_path_factory.mktemp("iip"), LARGEST) as server:
        server.add("whole", _picture(WIDTH, HEIGHT))
        server.add("turned", _picture(WIDTH, HEIGHT).transpose(Image.Transpose.ROTATE_180))
        yield server


@pytest.mark.parametrize(("side", "size", "requests"), ((210, (150, 210), 1), (350, (250, 350), 2), (0, (500, 700), 6)))
def test_pages_come_at_the_size_that_is_needed_whatever_the_server_gives_at_once(
    iip: IipServer, tmp_path: Path, side: int, size: tuple[int, int], requests: int
) -> None:
    address = iip.book(["whole"])
    iip.asked()
    (reported,) = _fetch(tmp_path, address, side=side)
    requested = iip.asked()
    assert (reported.fetched, reported.failed) == (1, []) and {line.split()[1] for line in requested} == {"200"}
    assert len([line for line in requested if ".jpg" in line]) == requests
    with Image.open(next(tmp_path.rglob("0*"))) as found:
        assert found.size == size
        differences = np.abs(
            np.asarray(found).astype(float) - _picture(WIDTH, HEIGHT).resize(size, Image.Resampling.BOX)
        )
    assert np.median(differences) < 6  # the server encodes at a quality of 75
    (again,) = _fetch(tmp_path, address, side=side)
    assert again.unchanged == 1 and iip.asked() == ["/book.json 304"]


def test_connections_that_are_cut_are_asked_for_again_and_what_is_left_comes_with_the_next_run(
    iip: IipServer, tmp_path: Path
) -> None:
    address, attempts = iip.book(["whole", "none", "turned"]), FetchPolicy().attempts
    iip.asked()
    iip.cuts[:] = [0, 300, 1500, 3000]  # before the header, in the middle: nginx ends all but the first as if whole
    (reported,) = _fetch(tmp_path, address, side=210)
    statuses = [line.split()[1] for line in iip.asked()]
    assert statuses.count("502") == 1 and not iip.cuts
    assert [one["page"] for one in reported.failed] == ["none"] and "status 404" in str(reported.failed[0]["reason"])
    assert _files(tmp_path) == ["0001-whole.jpg", "0003-turned.jpg"]
    for file in tmp_path.rglob("0*"):
        with Image.open(file) as found:
            found.load()
    iip.cuts[:] = [300] * (2 * attempts)
    (cut,) = _fetch(tmp_path / "other", iip.book(["whole", "turned"]), side=210)
    assert len(cut.failed) == 2 and all("run the same command again" in str(one["reason"]) for one in cut.failed)
    assert not iip.cuts
    (mended,) = _fetch(tmp_path / "other", address, side=210)
    assert (mended.fetched, mended.failed) == (2, [])


@pytest.mark.slow
def test_a_book_of_a_real_server_is_indexed_and_answers(iip: IipServer, tmp_path: Path) -> None:
    address = iip.book(["whole", "turned"])
    with cairn.create(tmp_path / "c", max_side=400, words=50) as collection:
        added = collection.add(address, allow_hosts=("127.0.0.1",), workers=1)
        assert (added.added, added.manifests[0]["failed"]) == (2, [])
        assert [photo.title for photo in collection] == ["Book, whole", "Book, turned"]
