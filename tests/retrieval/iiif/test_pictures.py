"""Pictures that a server gives in tiles alone, or not large enough at once."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

from retrieval.iiif.downloads import ManifestDownload
from retrieval.iiif.pictures import NotIiifError, TiledPicture, picture_requests
from retrieval.photos import apart, decoder
from retrieval.photos.apart import is_apart
from tests.retrieval.iiif.test_downloads import _fetch
from tests.support.hostile import encode
from tests.support.iiif_server import IiifServer, Reply

LEVEL_0 = {
    1: {"@context": "http://library.stanford.edu/iiif/image-api/1.1/context.json", "profile": "…#level0"},
    2: {"@context": "http://iiif.io/api/image/2/context.json", "profile": ["http://iiif.io/api/image/2/level0.json"]},
    3: {"@context": "http://iiif.io/api/image/3/context.json", "profile": "level0"},
}


def _picture(width: int, height: int) -> Image.Image:
    """A picture of slow changes with a mark in each part, which JPEG keeps."""
    y, x = np.mgrid[:height, :width]
    return Image.fromarray(np.stack([x % 256, y % 256, (x // 7 + y // 5) % 256], axis=2).astype(np.uint8))


def _encode(picture: Image.Image, **how: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG", **how)
    return file.getvalue()


def _prepare(
    server: IiifServer, picture: Image.Image, version: int, sides: tuple[int, int], factors: tuple[int, ...], **how: Any
) -> dict[str, Any]:
    """Serve tiles as a program that prepares them does; their info.json."""
    width, height = picture.size
    for factor in factors:
        for y in range(0, height, sides[1] * factor):
            for x in range(0, width, sides[0] * factor):
                box = (x, y, min(width, x + sides[0] * factor), min(height, y + sides[1] * factor))
                tile = picture.crop(box).reduce(factor)
                is_whole = box == (0, 0, width, height)
                region = "full" if is_whole else f"{x},{y},{box[2] - x},{box[3] - y}"
                size = f"{tile.width},{tile.height}" if version == 3 else f"{tile.width},"
                if is_whole and factor == 1:
                    size = "max" if version == 3 else "full"
                name = "native" if version == 1 else "default"
                server.files[f"/image/p/{region}/{size}/0/{name}.jpg"] = Reply(_encode(tile, **how))
    info = {**LEVEL_0[version], "width": width, "height": height}
    if version == 1:
        return info | {"tile_width": sides[0], "tile_height": sides[1], "scale_factors": list(factors)}
    return info | {"tiles": [{"width": sides[0], "height": sides[1], "scaleFactors": list(factors)}]}


def _get(server: IiifServer, target: str) -> bytes:
    reply = server.reply(f"/image/p/{target}", {})
    assert reply.status == 200, target
    return reply.content


@pytest.mark.parametrize("version", (1, 2, 3))
@pytest.mark.parametrize(
    ("needed", "factor"),
    ((301, 1), (152, 1), (151, 2), (77, 2), (76, 4), (20, 4)),
)
def test_tiles_are_put_together_pixel_for_pixel(
    server: IiifServer, monkeypatch: pytest.MonkeyPatch, version: int, needed: int, factor: int
) -> None:
    picture = _picture(301, 203)
    info = _prepare(server, picture, version, (64, 48), (1, 2, 4))
    (tiled,) = (one for one in picture_requests(info, lambda *size: needed) if isinstance(one, TiledPicture))
    kept: list[Image.Image] = []
    monkeypatch.setattr(Image.Image, "save", lambda image, *how, **more: kept.append(image))
    assert tiled.join(lambda target: _get(server, target)) == b""
    wanted = picture.reduce(factor)
    assert kept[0].size == wanted.size and np.array_equal(np.asarray(kept[0]), np.asarray(wanted))


def test_what_is_large_enough_at_once_is_not_asked_for_in_tiles() -> None:
    info = {**LEVEL_0[3], "width": 4000, "height": 3000, "tiles": [{"width": 512, "scaleFactors": [1, 2, 4, 8]}]}
    sizes = {"sizes": [{"width": 1000, "height": 750}, {"width": 2000, "height": 1500}]}

    def first(needed: int, **more: Any) -> str | tuple[int, int]:
        best = picture_requests(info | more, lambda width, height: needed)[0]
        return best if isinstance(best, str) else (best.width, best.height)

    assert first(2000, **sizes) == "full/2000,1500/0/default.jpg" and first(2002, **sizes) == (4000, 3000)
    assert first(2000) == "full/max/0/default.jpg" and first(1999) == (2000, 1500)
    assert first(1600, profile="level2") == "full/1600,/0/default.jpg"
    assert first(1600, profile="level2", maxWidth=1024) == (2000, 1500)
    assert first(1600, profile="level2", maxArea=1_000_000) == (2000, 1500)
    assert first(1000, profile="level2", maxWidth=1024) == "full/1000,/0/default.jpg"
    # As large as may be: not more pixels, and not more tiles, than are put together.
    huge = {"width": 40_000, "height": 30_000, "profile": "level2", "maxWidth": 1000}
    assert first(40_000, **huge) == (5000, 3750)
    assert first(40_000, **huge, tiles=[{"width": 64, "scaleFactors": [1, 16, 32]}]) == (1250, 938)
    assert first(40_000, **huge, tiles=[{"width": 64, "scaleFactors": [1, 2]}]) == "full/1000,/0/default.jpg"


def _download(server: IiifServer, folder: Path, info: dict[str, Any], side: int) -> ManifestDownload:
    server.add_json("/image/p/info.json", info)
    server.add_json("/m", server.manifest("/m", {"p": "1r"}))
    (reported,) = _fetch(folder, f"{server.address}/m", side=side)
    return reported


def test_a_page_in_tiles_is_a_picture_in_colours_of_srgb(server: IiifServer, tmp_path: Path) -> None:
    picture = _picture(300, 200)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    reported = _download(server, tmp_path, _prepare(server, picture, 3, (128, 128), (1, 2), icc_profile=profile), 140)
    assert (reported.fetched, reported.failed) == (1, [])
    with Image.open(next(tmp_path.rglob("*.jpg"))) as found:
        assert (found.format, found.size, found.info.get("icc_profile")) == ("JPEG", (150, 100), None)
        apart = np.abs(np.asarray(found).astype(int) - np.asarray(picture.reduce(2)))
    assert apart.mean() < 3


def test_a_tile_that_is_not_there_leaves_the_picture_as_a_whole(server: IiifServer, tmp_path: Path) -> None:
    picture = _picture(300, 200)
    info = _prepare(server, picture, 3, (128, 128), (1,)) | {"sizes": [{"width": 75, "height": 50}]}
    server.files["/image/p/128,0,128,128/128,128/0/default.jpg"] = Reply(status=403)
    server.files["/image/p/full/75,50/0/default.jpg"] = Reply(_encode(picture.reduce(4)))
    assert _download(server, tmp_path, info, 150).fetched == 1
    with Image.open(next(tmp_path.rglob("*.png"))) as found:
        assert found.size == (75, 50)


@pytest.mark.skipif(not is_apart(), reason="photos are decoded by the process that asks")
def test_tiles_are_decoded_by_other_processes_and_one_that_ends_its_decoder_is_damaged(
    server: IiifServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So large that a tile needs memory from the system, however much the decoder has freed before.
    picture = _picture(2400, 1600)
    info = _prepare(server, picture, 3, (1024, 1024), (1, 2)) | {"sizes": [{"width": 600, "height": 400}]}
    server.files["/image/p/full/600,400/0/default.jpg"] = Reply(_encode(picture.reduce(4)))
    with monkeypatch.context() as patched:
        patched.delattr(Image, "open")
        patched.delattr(decoder, "decode")
        assert _download(server, tmp_path / "a", info, 1200).fetched == 1
    assert [path.suffix for path in (tmp_path / "a").rglob("0*")] == [".jpg"]
    monkeypatch.setattr(apart, "_memory", lambda: 1)
    assert _download(server, tmp_path / "b", info, 1200).fetched == 1
    assert [path.suffix for path in (tmp_path / "b").rglob("0*")] == [".png"]


@pytest.mark.parametrize(
    ("tile", "sentence"),
    (
        (_encode(Image.new("RGB", (128, 126))), "another size"),
        (_encode(Image.new("RGB", (9000, 1))), "another size"),
        (_encode(Image.new("1", (9000, 9000))), "more than the limit of 16641 pixels"),
        (_encode(_picture(128, 128))[:300], "cannot be used: the file is truncated"),
        (encode(_picture(128, 128), "JPEG")[:-200], "cannot be used: the file is truncated"),
        (b"II*\0" + bytes(100), "cannot be used"),
        (b"", "cannot be used: the file is empty"),
    ),
)
def test_a_tile_that_is_no_such_picture_is_refused(server: IiifServer, tile: bytes, sentence: str) -> None:
    (best, _) = picture_requests(_prepare(server, _picture(300, 200), 3, (128, 128), (1,)), lambda *size: 140)
    assert isinstance(best, TiledPicture)
    with pytest.raises(NotIiifError, match=sentence):
        best.join(lambda target: tile)


def test_a_tile_may_be_a_pixel_off_as_servers_round(server: IiifServer) -> None:
    picture = Image.new("RGB", (300, 200), (9, 90, 200))
    (best, _) = picture_requests(_prepare(server, picture, 3, (128, 128), (1,)), lambda *size: 140)
    assert isinstance(best, TiledPicture)
    odd = {"256,0,44,128/44,128/0/default.jpg": _encode(picture.crop((256, 0, 299, 128)))}
    whole = Image.open(io.BytesIO(best.join(lambda target: odd.get(target) or _get(server, target))))
    assert whole.size == (300, 200) and np.ptp(np.asarray(whole).reshape(-1, 3), axis=0).max() <= 1
