"""Frames of films are read to the frame, without rights, and for a bounded time."""

from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from retrieval.metadata.pages import file_of, page_mark, page_path, split_page, stem_of
from retrieval.photos import apart
from retrieval.photos.apart import decoding_here
from retrieval.photos.decoding import decode_content, other_frames, read_colour, read_orientation, read_photo
from retrieval.photos.listing import list_photos
from retrieval.photos.options import ImageOptions
from retrieval.photos.passing import PassedOver, Passing
from tests.support.films import CODECS, FPS, number_of, shot, write_film
from tests.support.hostile import encode, photo

LENGTHS = {"chelsea": 12, "coffee": 17, "rocket": 30}
FRAME = 1000 // FPS


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    return write_film(path, *(shot(name, frames) for name, frames in LENGTHS.items()))


@pytest.mark.parametrize(
    "suffix", [pytest.param(one, marks=[pytest.mark.slow] if one in (".mov", ".webm") else []) for one in CODECS]
)
def test_times_are_those_of_the_frames(tmp_path: Path, suffix: str) -> None:
    film = write_film(tmp_path / f"film{suffix}", *(shot(name, frames) for name, frames in LENGTHS.items()))
    times, missing = other_frames(film, 0)
    assert missing == 0
    assert [12 <= time / FRAME < 29 for time in times] == [True, False] and 29 <= times[1] / FRAME < 59
    for time in (0, 29 * FRAME, 58 * FRAME, times[0]):
        assert number_of(read_colour(page_path(film, time))) * FRAME == time
    assert number_of(read_colour(page_path(film, 28 * FRAME + 1))) == 29  # the next one
    assert number_of(read_colour(film)) < 12
    by_time = [next(frame for frame in range(59) if frame * FRAME >= 130 * n) * FRAME for n in range(1, 18)]
    assert other_frames(film, 0.13) == (by_time, 0)


def test_a_film_gives_the_same_in_this_process(film: Path) -> None:
    with decoding_here():
        times, here = other_frames(film, 0), read_colour(film, ImageOptions(max_side=100))
    assert other_frames(film, 0) == times
    np.testing.assert_array_equal(read_colour(film, ImageOptions(max_side=100)), here)
    found = read_photo(film)
    assert (found.width, found.height, found.grey.shape, read_orientation(film)) == (320, 240, (240, 320), 1)


def test_a_film_that_was_cut_off_is_refused_or_told_by_what_is_missing(film: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(film.read_bytes()[: film.stat().st_size // 2])  # its table stands at the end
    for read in (read_photo, lambda path: other_frames(path, 0)):
        with pytest.raises(CairnError, match="the film is damaged"):
            read(cut)
    whole = write_film(tmp_path / "film.avi", *(shot(name, frames) for name, frames in LENGTHS.items()))
    whole.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    times, missing = other_frames(whole, 0)
    assert 0.2 < missing < 0.8 and all(time / FRAME < 59 * (1 - missing) for time in times)


def test_a_time_behind_the_end_is_told(film: Path) -> None:
    with pytest.raises(CairnError, match="the film has no frame at 00:13:07"):
        read_photo(page_path(film, 787_040))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"#EXTM3U\nfile:///etc/passwd\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
        b"\0\0\0\x18ftypisom" + bytes(64),
    ],
)
def test_what_is_no_film_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "film.mp4").write_bytes(content)
    with pytest.raises(CairnError):
        other_frames(tmp_path / "film.mp4", 0)
        read_photo(tmp_path / "film.mp4")


def test_films_are_decoded_by_their_extension_alone(film: Path, tmp_path: Path) -> None:
    (tmp_path / "film.jpg").write_bytes(film.read_bytes())
    with pytest.raises(CairnError, match="not a photo"):
        read_photo(tmp_path / "film.jpg")
    with pytest.raises(CairnError, match="not a photo"):
        decode_content(film.read_bytes(), ImageOptions())
    (tmp_path / "photo.mp4").write_bytes(encode(photo(size=(96, 64)), "JPEG"))
    assert read_photo(tmp_path / "photo.mp4").width == 96 and other_frames(tmp_path / "photo.mp4", 0) == ([], 0)


def test_frames_are_bounded_in_size_and_a_film_in_time(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CairnError, match="320x240 pixels, which is more than the limit"):
        read_photo(film, ImageOptions(max_pixels=320 * 240 - 1))
    if apart.is_apart():
        monkeypatch.setattr(apart, "LEAST_SECONDS", 0)
        monkeypatch.setattr(apart, "PIXELS_A_SECOND", 1 << 40)
        with pytest.raises(CairnError, match=apart.TOO_LONG):
            other_frames(film, 0)


def test_names_of_frames_are_legal_unique_and_sorted() -> None:
    times = [0, 7, 59_999, 60_000, 787_040, 3_600_000, 359_999_999]
    marks = [page_mark("film.MP4", time) for time in times]
    assert marks == sorted(set(marks)) and not set("".join(marks)) & set('<>:"/\\|?* ')
    for time, mark in zip(times, marks, strict=True):
        assert split_page(f"/no/film.MP4{mark}") == (Path("/no/film.MP4"), time)
    assert split_page("/no/film.mp4#00h13m07s") == (Path("/no/film.mp4"), 787_000)
    assert stem_of("2020/film.mp4#00h13m07s040") == "film#00h13m07s040"
    for other in ("/no/film.mp4#12", "/no/book.tif#00h13m07s040", "/no/film.mp4#00h60m07s040"):
        assert file_of(other) == Path(other)


def test_films_of_a_folder_are_listed_where_they_are_asked_for(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.MOV", "c.jpg", "PXL_1.MP.jpg", "IMG_1.MP", "d.mp4.xmp", "e.mp3"):
        (tmp_path / name).touch()
    reported = PassedOver()
    assert [path.name for _, path in list_photos([tmp_path], reported)] == ["PXL_1.MP.jpg", "c.jpg"]
    assert reported.files == {".mp4": 1, ".mov": 1, ".mp": 1, ".mp3": 1}
    found = list_photos([tmp_path], reported := PassedOver(), passing=Passing(films=True, exclude=("b.*",)))
    assert [path.name for _, path in found] == ["PXL_1.MP.jpg", "a.mp4", "c.jpg"]
    assert reported.files == {".mp": 1, ".mp3": 1} and reported.folders == {"b.*": 1}
