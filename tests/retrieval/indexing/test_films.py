"""Films: frames of their shots are photos of a collection, where films are asked for."""

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

import cairn as public
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.metadata.pages import page_path
from retrieval.photos.decoding import read_colour
from retrieval.web.taking.exports import ExportOptions
from tests.conftest import Ran
from tests.support.books import PAGES
from tests.support.films import FPS, number_of, shot, write_film
from tests.support.hostile import photo
from tests.support.live import serving

Cairn = Callable[..., Ran]
OPTIONS = ("--words", 40, "--workers", 1)
LENGTH = 15  # frames of a shot


def film_of(path: Path, shots: tuple[str, ...] = PAGES) -> Path:
    return write_film(path, *(shot(name, LENGTH) for name in shots))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a film and a photo."""
    folder = tmp_path / "photos"
    folder.mkdir()
    film_of(folder / "film.mp4")
    photo("page").save(folder / "single.png")
    return folder


def pages(collection: Path) -> dict[str, int | None]:
    with public.open(collection) as opened:
        return {one.name: one.page for one in opened.photos()}


def test_films_are_photos_where_they_are_asked_for(tmp_path: Path, folder: Path, cairn: Cairn) -> None:
    collection = tmp_path / "a.cairn"
    reported = cairn("index", collection, folder, *OPTIONS)
    assert "1 added" in reported.out and "Films that were skipped: 1 (--films adds them)." in reported.out
    reported = cairn("index", collection, folder, "--films", "--json").json
    assert (reported["added"], reported["unchanged"], reported["failed"], reported["passed_over"]) == (4, 1, [], {})
    names = list(pages(collection))
    assert names[0] == "film.mp4" and names[-1] == "single.png" and len(names) == 5
    for place, shown in [*enumerate(PAGES)][::2]:
        photo(shown, (300, 225)).save(tmp_path / "query.png")
        first = cairn("query", collection, tmp_path / "query.png", "--json").json["results"][0]
        assert first["found"] and first["name"] == names[place] and first["path"] == str(folder / "film.mp4")
        frame = number_of(read_colour(page_path(folder / "film.mp4", first["page"])))
        assert frame // LENGTH == place
        if place:
            assert first["page"] == 1000 * frame // FPS and first["title"] == "film.mp4 at 00:00:0" + names[place][-5]
    for requested in (names[2], f"{folder}/film.mp4#00h00m00s"):
        assert cairn("query", collection, requested, "--json").json["results"][0]["name"] in names[:3:2]
    # It is remembered, and nothing is added again.
    reported = cairn("index", collection, folder, "--json").json
    assert (reported["added"], reported["unchanged"], reported["reread"]) == (0, 5, 0)
    reported = cairn("index", collection, folder, "--again", "--json").json
    assert (reported["added"], reported["unchanged"], reported["vanished"]) == (0, 5, [])
    reported = cairn("index", collection, folder, "--no-films", "--json").json
    assert (reported["added"], reported["vanished"], reported["passed_over"]) == (0, [], {".mp4": 1})
    assert list(pages(collection)) == names


def test_frames_at_an_interval_are_added_to_those_there(tmp_path: Path, folder: Path, cairn: Cairn) -> None:
    collection = tmp_path / "a.cairn"
    assert "seconds apart" in cairn("index", collection, folder, "--frame-every", 0.01).refused()
    cairn("index", collection, folder, *OPTIONS, "--frame-every", 1, "--max-pages", 2)
    assert pages(collection) == {"film.mp4": None, "film.mp4#00h00m01s000": 1000, "single.png": None}
    reported = cairn("index", collection, folder, "--json").json  # the frames that were left
    assert (reported["added"], reported["pages_left"]) == (1, 0)
    by_time = pages(collection)
    assert by_time["film.mp4#00h00m02s000"] == 2000
    cairn("index", collection, folder, "--frame-every", 0)
    assert pages(collection).items() > by_time.items() and len(pages(collection)) == 7
    cairn("index", collection, folder)
    assert cairn("index", collection, folder, "--json").json["reread"] == 0  # no film is looked at again


def test_frames_move_change_and_go_with_their_film(tmp_path: Path, folder: Path, cairn: Cairn) -> None:
    collection = tmp_path / "a.cairn"
    cairn("index", collection, folder, *OPTIONS, "--films")
    before = pages(collection)
    (folder / "film.mp4").rename(folder / "other.mp4")
    reported = cairn("index", collection, folder, "--json").json
    assert (reported["added"], len(reported["moved"]), reported["vanished"]) == (0, 4, [])
    assert [*pages(collection).values()] == [*before.values()]
    film_of(folder / "other.mp4", PAGES[:2])
    os.utime(folder / "other.mp4", (1e9, 1e9))
    reported = cairn("index", collection, folder, "--json").json
    assert reported["added"] == 2 and len(reported["vanished"]) == 2
    assert len(cairn("remove", collection, "--missing", "--json").json["removed"]) == 2
    (folder / "other.mp4").unlink()
    assert len(cairn("index", collection, folder, "--json").json["vanished"]) == 2


def test_the_bin_takes_a_film_with_all_of_its_frames(tmp_path: Path, folder: Path, cairn: Cairn) -> None:
    from retrieval.curation.discarding import discard, restore

    cairn("index", tmp_path / "a.cairn", folder, *OPTIONS, "--frame-every", 0.7)
    film, before = folder / "film.mp4", pages(tmp_path / "a.cairn")
    with Collection.open(tmp_path / "a.cairn") as opened:
        numbers = [row.number for row in opened.catalogue.read(all_indexed) if row.name != "single.png"]
        came = discard(opened.catalogue, numbers[1:], tmp_path / "bin", tmp_path / "a.cairn")
        assert not came.moved and all("choose all 4 pages" in str(reason) for reason in came.failed.values())
        came = discard(opened.catalogue, numbers, tmp_path / "bin", tmp_path / "a.cairn")
        assert not came.failed and not film.exists() and pages(tmp_path / "a.cairn") == {"single.png": None}
        restore(opened.catalogue, [one.id for one in came.moved], tmp_path / "bin")
    assert film.exists() and pages(tmp_path / "a.cairn") == before


def test_a_damaged_film_is_told_and_the_others_are_taken(tmp_path: Path, folder: Path, cairn: Cairn) -> None:
    whole = (folder / "film.mp4").read_bytes()
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    frames = film_of(tmp_path / "whole.avi").read_bytes()
    (folder / "short.avi").write_bytes(frames[: len(frames) // 2])
    reported = cairn("index", tmp_path / "a.cairn", folder, *OPTIONS, "--films", "--json").json
    assert [(Path(one["path"]).name, one["reason"]) for one in reported["failed"]] == [
        ("cut.mp4", "the film is damaged, or in a format that cannot be read")
    ]
    assert [Path(one["path"]).name for one in reported["remarks"]] == ["short.avi"]
    assert "% of the film are missing" in reported["remarks"][0]["reason"]
    assert {"film.mp4", "short.avi"} <= set(pages(tmp_path / "a.cairn"))
    shutil.copy(folder / "film.mp4", folder / "cut.mp4")
    reported = cairn("index", tmp_path / "a.cairn", folder, "--json").json
    assert reported["failed"] == [] and reported["added"] == 4


@pytest.mark.slow
def test_a_film_is_given_out_in_parts_to_those_who_may_have_originals(
    tmp_path: Path, folder: Path, cairn: Cairn
) -> None:
    collection = tmp_path / "a.cairn"
    cairn("index", collection, folder, *OPTIONS, "--films")
    content = (folder / "film.mp4").read_bytes()
    with public.open(collection) as opened:
        numbers = {one.name: one.number for one in opened.photos()}
    frame, single = next(number for name, number in numbers.items() if "#" in name), numbers["single.png"]
    with serving(collection, tmp_path / "cache") as address, httpx.Client(base_url=address, timeout=60) as client:
        reported = client.get(f"/api/photos/{frame}").json()
        assert reported["film"] > 0 and reported["title"].startswith("film.mp4 at 00:00:0")
        assert client.get(f"/api/photos/{single}").json()["film"] is None
        whole = client.get(f"/api/photos/{frame}/film")
        assert (whole.content, whole.headers["content-type"]) == (content, "video/mp4")
        assert "media-src 'self'" in whole.headers["content-security-policy"]
        part = client.get(f"/api/photos/{frame}/film", headers={"Range": "bytes=100-199"})
        assert (part.status_code, part.content) == (206, content[100:200])
        assert client.get(f"/api/photos/{single}/film").status_code == 404
        made = client.get(f"/api/photos/{frame}/image", params={"size": 320})
        assert np.asarray(Image.open(io.BytesIO(made.content))).shape == (240, 320, 3)
        (folder / "film.mp4").write_bytes(content + b"more")
        assert client.get(f"/api/photos/{frame}/film").status_code == 410
    with (
        serving(collection, tmp_path / "cache", exports=ExportOptions(files=False)) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        assert client.get(f"/api/photos/{frame}/film").status_code == 403
        assert client.get(f"/api/photos/{frame}").json()["film"] is None


def test_uploaded_films_are_kept_and_it_is_told_while_shots_are_found(tmp_path: Path, folder: Path) -> None:
    reported: list[tuple[str, int, int]] = []
    with public.create(tmp_path / "c.cairn", words=40) as made:
        made.add(folder / "single.png", workers=1)
    with serving(tmp_path / "c.cairn", tmp_path / "cache") as base, httpx.Client(base_url=base, timeout=60) as client:
        sent = {"photos": ("../Trip.MP4", (folder / "film.mp4").read_bytes())}
        kept = client.post("/api/photos", headers={"X-Cairn": "1"}, files=sent, data={"index": "no"})
        assert kept.status_code == 201 and kept.json()["photos"][0].endswith("Trip.MP4")
    with public.open(tmp_path / "c.cairn") as collection:
        uploads = tmp_path / "c.cairn" / "uploads"
        added = collection.add(uploads, films=True, workers=1, progress=lambda *reached: reported.append(reached))
        assert added.added == 4
    assert [one for one in reported if one[0] == "shots"] == [("shots", 0, 1), ("shots", 1, 1)]
