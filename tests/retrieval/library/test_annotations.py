"""Matches within groups as Web Annotations."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

import cairn
from tests.support.iiif_server import serve_iiif


def _box(place: dict[str, Any]) -> list[float]:
    assert place["selector"]["type"] == "FragmentSelector"
    found = re.fullmatch(r"xywh=(?:percent:)?([0-9.]+),([0-9.]+),([0-9.]+),([0-9.]+)", place["selector"]["value"])
    assert found is not None
    return [float(one) for one in found.groups()]


@pytest.mark.parametrize("size", (720, None))
def test_a_pair_of_canvases_is_told_in_their_own_pixels(size: int | None, tmp_path: Path) -> None:
    noise = np.random.default_rng(7).integers(0, 255, (400, 420, 3), dtype=np.uint8)
    wall = Image.fromarray(noise).filter(ImageFilter.GaussianBlur(3))
    wall = wall.point(lambda value: int(min(255, max(0, (value - 128) * 6 + 128))))
    with serve_iiif() as server, cairn.create(tmp_path / "c", words=100) as collection:
        server.pictures = {"a": wall.crop((0, 0, 360, 360)), "b": wall.crop((60, 40, 420, 400))}
        manifest = server.manifest("/m", {"a": "1", "b": "2"})
        if size is not None:
            for canvas in manifest["items"]:
                canvas |= {"width": size, "height": size}
        collection.add(server.add_json("/m", manifest), allow_hosts=["127.0.0.1"], workers=1)
        with pytest.raises(cairn.NotGrouped):
            collection.save_annotations(tmp_path / "m.jsonld")
        collection.group(workers=1)
        assert collection.save_annotations(tmp_path / "m.jsonld") == 1
    page = json.loads((tmp_path / "m.jsonld").read_text())
    assert page["@context"][0] == "http://www.w3.org/ns/anno.jsonld" and page["type"] == "AnnotationPage"
    (item,) = page["items"]
    assert (item["type"], item["motivation"], item["group"]) == ("Annotation", ["linking", "commenting"], 1)
    assert [one["source"] for one in (item["target"], item["body"][0])] == [
        f"{server.address}/canvas/{one}" for one in "ab"
    ]
    assert item["probability"] > 0.9 and item["inliers"] >= 20
    # The second shows what the first does 60 pixels further left and 40 higher, of 360.
    units = size or 100
    shift = np.array([-60, -40]) * units / 360
    mapped = np.array(item["map"]) @ [units / 2, units / 2, 1]
    assert np.allclose(mapped[:2] / mapped[2], units / 2 + shift, atol=units / 180)
    target, body = _box(item["target"]), _box(item["body"][0])
    assert np.allclose(np.array(target[:2]) + shift, body[:2], atol=units / 20)
    assert np.allclose(target[2:], body[2:], atol=units / 20) and min(target[2:]) > units / 2
    assert ("percent:" in item["target"]["selector"]["value"]) == (size is None)


def test_photos_of_folders_are_told_by_their_names(tmp_path: Path, cairn: Callable[..., Any]) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    noise = np.random.default_rng(7).integers(0, 255, (300, 300), dtype=np.uint8)
    wall = Image.fromarray(noise).filter(ImageFilter.GaussianBlur(3)).point(lambda value: 255 if value > 127 else 0)
    wall.save(folder / "ä.png")
    wall.crop((0, 0, 280, 280)).save(folder / "b.png")
    assert cairn("index", tmp_path / "c", tmp_path / "a b", "--words", 100).code == 0
    assert cairn("group", tmp_path / "c", "--workers", 1).code == 0
    out = tmp_path / "out.jsonld"
    assert cairn("annotations", tmp_path / "c", "--out", out, "--json").json["annotations"] == 1
    (item,) = json.loads(out.read_text())["items"]
    assert {item["target"]["source"], item["body"][0]["source"]} == {"%C3%A4.png", "b.png"}
    tei = tmp_path / "out.xml"
    assert cairn("annotations", tmp_path / "c", "--out", tei).code == 0
    assert tei.read_text().count("<zone ") == 2 and '<link target="#z1 #z2"' in tei.read_text()
    found = ["query", tmp_path / "c", "b.png", "--box", 40, 40, 240, 240, "--annotations", out]
    assert cairn(*found).code == 0
    (item,) = json.loads(out.read_text())["items"]
    assert [one["source"] for one in (item["target"], item["body"][0])] == ["b.png", "%C3%A4.png"]
    assert _box(item["target"]) == [40, 40, 201, 201] and item["probability"] > 0.8
    assert np.allclose(
        _box(item["body"][0]), [40, 40, 200, 200], atol=3
    )  # it shows the same part, cut at the same corner
    ran = cairn("annotations", tmp_path / "c", "--out", tmp_path / "none" / "out.jsonld")
    assert ran.code == 2 and "cannot be written" in ran.err
