"""Parts of photos by the addresses of the IIIF Image API: what they show, what is refused, and who gets how much."""

import functools
import hashlib
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image
from skimage import data

from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.web.routes.iiif import parse_region, parse_size
from retrieval.web.taking.exports import ExportOptions
from tests.support.live import client_of, serving

WIDTH, HEIGHT = 9000, 1200  # longer than a picture of a page is


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of a long scan, stored lying on its side."""
    home = tmp_path_factory.mktemp("scans")
    (home / "photos").mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6
    scan().transpose(Image.Transpose.ROTATE_90).save(home / "photos" / "scan.jpg", exif=exif, quality=90)
    with Collection.create(home / "scans.cairn", CollectionOptions(signature="none", words=64)) as collection:
        index_photos(collection, [home / "photos"])
    return home / "scans.cairn"


@pytest.fixture(scope="module")
def served_scans(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    cache = tmp_path_factory.mktemp("served") / "cache"
    with serving(folder, cache) as base, client_of(base) as client:
        yield client


def picture(answer: httpx.Response, kind: str = "jpeg") -> np.ndarray:
    assert answer.status_code == 200 and answer.headers["content-type"] == f"image/{kind}", answer.text
    return np.asarray(Image.open(io.BytesIO(answer.content)), float)


@functools.cache
def scan() -> Image.Image:
    return Image.fromarray(data.coffee()).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)


def upright(box: tuple[int, int, int, int], size: tuple[int, int]) -> np.ndarray:
    return np.asarray(scan().resize(size, Image.Resampling.LANCZOS, box), float)


def number_of(client: httpx.Client) -> int:
    return int(client.get("/api/photos").json()["photos"][0]["number"])


def test_it_tells_how_large_a_photo_is_and_in_which_tiles(served_scans: httpx.Client) -> None:
    number = number_of(served_scans)
    told = served_scans.get(f"/api/iiif/{number}/info.json").json()
    assert told["@context"] == "http://iiif.io/api/image/3/context.json" and told["type"] == "ImageService3"
    assert told["id"] == f"{served_scans.base_url}/api/iiif/{number}"
    assert (told["width"], told["height"], told["maxWidth"]) == (WIDTH, HEIGHT, 4096)
    assert told["tiles"] == [{"width": 512, "scaleFactors": [1, 2, 4, 8, 16, 32]}]


@pytest.mark.parametrize(
    ("address", "box", "size"),
    [
        ("0,0,512,512/512,512", (0, 0, 512, 512), (512, 512)),
        ("8704,1024,296,176/296,176", (8704, 1024, 9000, 1200), (296, 176)),
        ("8192,0,808,1200/101,150", (8192, 0, 9000, 1200), (101, 150)),
        ("0,0,9000,1200/282,38", (0, 0, 9000, 1200), (282, 38)),
        ("full/max", (0, 0, 9000, 1200), (4096, 546)),
        ("full/450,", (0, 0, 9000, 1200), (450, 60)),
        ("full/,60", (0, 0, 9000, 1200), (450, 60)),
        ("full/!450,450", (0, 0, 9000, 1200), (450, 60)),
        ("full/pct:5", (0, 0, 9000, 1200), (450, 60)),
        ("square/300,300", (3900, 0, 5100, 1200), (300, 300)),
        ("pct:50,50,10,50/300,200", (4500, 600, 5400, 1200), (300, 200)),
        ("8900,1100,500,500/100,100", (8900, 1100, 9000, 1200), (100, 100)),
    ],
)
def test_a_part_is_what_the_photo_shows_there(
    served_scans: httpx.Client, address: str, box: tuple[int, int, int, int], size: tuple[int, int]
) -> None:
    asked = f"/api/iiif/{number_of(served_scans)}/{address}/0/default.jpg"
    answer = served_scans.get(asked)
    found = picture(answer)
    assert found.shape == (size[1], size[0], 3)
    assert abs(found - upright(box, size)).mean() < 12
    assert answer.headers["cache-control"] == "private, no-cache"
    again = served_scans.get(asked, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_a_page_that_asks_for_all_tiles_at_once_gets_them(served_scans: httpx.Client) -> None:
    number = number_of(served_scans)

    def ask(x: int) -> np.ndarray:
        return picture(served_scans.get(f"/api/iiif/{number}/{x},0,512,512/512,512/0/default.jpg"))

    with ThreadPoolExecutor(8) as pool:
        tiles = list(pool.map(ask, range(0, 4096, 512)))
    assert abs(np.hstack(tiles) - upright((0, 0, 4096, 512), (4096, 512))).mean() < 5


WRONG_REGIONS = """x 0,0,9 0,0,-1,5 9000,0,5,5 0,0,0,0 1.5,0,5,5 pct:0,0,0,0 ٣,0,5,5 1e3,0,5,5 pct:1e999,0,1,1"""
WRONG_SIZES = f""", !5, 5000, 9001,1200 ^max 0,0 pct:0 pct:101 pct:nan {"9" * 29} -5, 5,5,5 !5000,5000x"""


@pytest.mark.parametrize(
    "address",
    [f"{region}/max" for region in WRONG_REGIONS.split()] + [f"full/{size}" for size in WRONG_SIZES.split()],
)
def test_what_is_no_part_is_refused_in_a_sentence(served_scans: httpx.Client, address: str) -> None:
    answer = served_scans.get(f"/api/iiif/{number_of(served_scans)}/{address}/0/default.jpg")
    assert answer.status_code == 400 and answer.json()["detail"].endswith(".")


def test_a_part_is_turned_mirrored_grey_and_in_other_formats(served_scans: httpx.Client) -> None:
    address = f"/api/iiif/{number_of(served_scans)}/0,0,800,400/80,40"
    upright_ = picture(served_scans.get(f"{address}/0/default.jpg"))
    for rotation, expected in (
        ("90", np.rot90(upright_, -1)),
        ("180", upright_[::-1, ::-1]),
        ("!0", upright_[:, ::-1]),
        ("!270", np.rot90(upright_[:, ::-1])),
    ):
        turned = picture(served_scans.get(f"{address}/{rotation}/color.jpg"))
        assert turned.shape == expected.shape and abs(turned - expected).mean() < 6, rotation
    for file, kind, mode in (("gray.jpg", "jpeg", "L"), ("default.png", "png", "RGB"), ("default.webp", "webp", "RGB")):
        answer = served_scans.get(f"{address}/0/{file}")
        assert answer.headers["content-type"] == f"image/{kind}"
        made = Image.open(io.BytesIO(answer.content))
        assert (made.mode, made.format, made.size) == (mode, kind.upper(), (80, 40))
    black_and_white = picture(served_scans.get(f"{address}/0/bitonal.png"), "png")
    assert set(np.unique(black_and_white)) == {0, 255}
    assert (black_and_white == 255).mean() == pytest.approx((upright_ @ [0.299, 0.587, 0.114] > 127).mean(), abs=0.03)


def test_the_address_of_a_photo_leads_to_what_is_told_of_it(served_scans: httpx.Client) -> None:
    address = f"/api/iiif/{number_of(served_scans)}"
    found = served_scans.get(address)
    assert (found.status_code, found.headers["location"]) == (303, f"{served_scans.base_url}{address}/info.json")
    plain = served_scans.get(f"{address}/info.json")
    assert plain.headers["content-type"] == "application/json" and plain.json()["profile"] == "level2"
    linked = served_scans.get(f"{address}/info.json", headers={"Accept": "application/ld+json"})
    assert linked.headers["content-type"].startswith("application/ld+json;profile=") and linked.json() == plain.json()


def test_there_is_no_other_rotation_quality_or_photo(served_scans: httpx.Client) -> None:
    number = number_of(served_scans)
    for end in ("45/default.jpg", "90.0/default.jpg", "0/native.jpg", "0/default.tif", "0/default"):
        answer = served_scans.get(f"/api/iiif/{number}/full/max/{end}")
        assert answer.status_code == 400 and answer.json()["detail"].endswith("."), end
    for unknown in ("999999", "9" * 30, "x", "-1", "٣"):
        for end in ("full/max/0/default.jpg", "info.json"):
            answer = served_scans.get(f"/api/iiif/{unknown}/{end}")
            assert answer.status_code == 404 and answer.json()["detail"].endswith("."), unknown


def test_who_gets_no_originals_gets_no_more_of_them_by_tiles(folder: Path, tmp_path: Path) -> None:
    with serving(folder, tmp_path / "cache", exports=ExportOptions(files=False)) as base, client_of(base) as client:
        number = number_of(client)
        told = client.get(f"/api/iiif/{number}/info.json").json()
        assert (told["width"], told["height"]) == (2250, 300)
        found = picture(client.get(f"/api/iiif/{number}/1024,0,512,300/512,300/0/default.jpg"))
        assert abs(found - upright((4096, 0, 6144, 1200), (512, 300))).mean() < 5
        # Its whole pixels have no address: each is of the smaller picture, or outside it.
        assert client.get(f"/api/iiif/{number}/0,0,512,512/512,512/0/default.jpg").status_code == 400
        assert client.get(f"/api/iiif/{number}/8192,0,512,512/512,512/0/default.jpg").status_code == 400
        assert picture(client.get(f"/api/iiif/{number}/full/max/0/default.jpg")).shape == (300, 2250, 3)


def test_a_photo_that_has_gone_is_told_of_and_shown_when_it_is_back(folder: Path, tmp_path: Path) -> None:
    with serving(folder, tmp_path / "cache") as base, client_of(base) as client:
        asked = f"/api/iiif/{number_of(client)}/0,0,512,512/512,512/0/default.jpg"
        file = folder.parent / "photos" / "scan.jpg"
        away = file.rename(folder.parent / "away.jpg")
        try:
            answer = client.get(asked)
            assert answer.status_code == 410 and "no longer there" in answer.json()["detail"]
        finally:
            away.rename(file)
        picture(client.get(asked))
        kept = tmp_path / "cache" / "tiles" / f"{hashlib.sha256(file.read_bytes()).hexdigest()}.zip"
        assert kept.stat().st_mode & 0o077 == 0  # for the owner alone


def test_regions_and_sizes_stay_within_the_photo() -> None:
    for region in ("full", "square", "0,0,99999,99999", "pct:99,99,50,50", "pct:0,0,100,100", "639,479,1,1"):
        x0, y0, x1, y1 = box = parse_region(region, 640, 480)
        assert 0 <= x0 < x1 <= 640 and 0 <= y0 < y1 <= 480
        width, height = parse_size("max", box)
        assert 1 <= width <= 640 and 1 <= height <= 480
