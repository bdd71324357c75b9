"""Photos to take away: the files as they were indexed, under names that are safe anywhere, within limits."""

import hashlib
import io
import ntpath
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath

import httpx
import pytest
from PIL import Image, ImageFont

from retrieval.catalogue.schema import ImageRow
from retrieval.web.pool.workers import Refused
from retrieval.web.taking import sheets
from retrieval.web.taking.exports import ExportOptions, archive_names, check_files, stream_archive
from tests.conftest import VIEWS, Indexed, Ran
from tests.support.books import write_book
from tests.support.hostile import photo
from tests.support.live import serving

Cairn = Callable[..., Ran]


def reserved(name: str) -> bool:
    """Whether Windows takes a name for a device's, or for none."""
    if sys.version_info >= (3, 13):
        return ntpath.isreserved(name)
    return PureWindowsPath(name).is_reserved()


HOSTILE = [
    "../../../etc/passwd",
    "/etc/passwd",
    r"..\..\windows\system32\cup.jpg",
    r"C:\cup.jpg",
    "c:cup.jpg",
    "//server/share/cup.jpg",
    "a/./b/../cup.jpg",
    "..",
    ".",
    "",
    " ",
    "...",
    "con",
    "CON.jpg",
    "a/nul.tar.jpg",
    "lpt1",
    "cup.jpg.",
    "cup.jpg ",
    "new\nline\r\0.jpg",
    "\u202egpj.exe",
    "\ud800lone.jpg",
    "a" * 1000 + ".jpg",
    "名" * 400 + ".jpg",
    "/".join("ab" for _ in range(500)),
    "a",
    "a/b",
    "A/B",
    "x/y/z",
    "x/y",
    "X",
    'b<>:"|?*.jpg',
    "Straße/Großmutter am Wörthersee.jpg",
    "Straße/Gro\u00dfmutter am Wo\u0308rthersee.jpg",
]


def test_names_in_an_archive_are_safe_and_unique() -> None:
    names = archive_names(HOSTILE * 2)
    assert len(names) == 2 * len(HOSTILE)
    assert len({name.casefold() for name in names}) == len(names)
    folders = {str(folder).casefold() for name in names for folder in PurePosixPath(name).parents}
    assert not folders & {name.casefold() for name in names}  # none is a folder of another
    for name in names:
        name.encode()
        assert name and not name.startswith("/") and "\\" not in name and ":" not in name
        for part in name.split("/"):
            assert part not in ("", ".", "..") and part == part.strip(" ") and not part.endswith(".")
            assert part.isprintable() and len(part.encode()) <= 220
            assert not reserved(part)
        assert len(name) < 2000
    assert archive_names(["Straße/Großmutter.jpg", "2020/cup-1.jpg"]) == ["Straße/Großmutter.jpg", "2020/cup-1.jpg"]


def row(number: int, path: Path, name: str) -> ImageRow:
    content = path.read_bytes() if path.is_file() else b""
    return ImageRow(number=number, path=str(path), name=name, sha256=hashlib.sha256(content).hexdigest())


def test_only_files_that_are_as_they_were_indexed_are_taken(tmp_path: Path) -> None:
    good, other, gone, pipe = (tmp_path / name for name in ("good.jpg", "other.jpg", "gone.jpg", "pipe.jpg"))
    good.write_bytes(b"photo" * 1000)
    other.write_bytes(b"another photo")
    rows = [row(1, good, "../good.jpg"), row(2, other, "../good.jpg")]
    os.utime(good, (0, 0))  # 1970: a ZIP archive begins in 1980
    sizes = check_files(rows, ExportOptions())
    packed = zipfile.ZipFile(io.BytesIO(b"".join(stream_archive(rows, sizes))))
    assert packed.testzip() is None and packed.namelist() == ["good.jpg", "good (2).jpg"]
    assert [packed.read(name) for name in packed.namelist()] == [b"photo" * 1000, b"another photo"]
    with pytest.raises(Refused, match="select fewer") as refused:
        check_files(rows, ExportOptions(bytes=5012))
    assert refused.value.kind == "large"
    other.write_bytes(b"something secret")  # the catalogue names a file that is not the photo
    os.mkfifo(pipe)
    for wrong in (rows[1], row(3, gone, "gone.jpg"), row(4, pipe, "pipe.jpg"), row(5, tmp_path, "folder.jpg")):
        with pytest.raises(Refused, match="no longer there, or has changed") as refused:
            check_files([rows[0], wrong], ExportOptions())
        assert refused.value.kind == "gone" and str(tmp_path) not in str(refused.value)
    # One that changes while it is sent breaks the archive off.
    with pytest.raises(OSError, match="changed while"):
        b"".join(stream_archive(rows, [sizes[0], len(b"something secret")]))


def test_photos_are_taken_away_as_a_zip(client: httpx.Client, indexed: Indexed) -> None:
    photos = client.get("/api/photos", params={"name": "coffee"}).json()["photos"]
    numbers = [photo["number"] for photo in photos]
    answer = client.post("/api/export", json={"photos": [*numbers, numbers[0]]})
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="photos.zip"'
    packed = zipfile.ZipFile(io.BytesIO(answer.content))
    assert len(packed.namelist()) == VIEWS
    for name in packed.namelist():
        assert packed.read(name) == (indexed.photos / name).read_bytes()
    for body, status in (
        ({"photos": []}, 422),
        ({"photos": [-1]}, 422),
        ({"photos": ["../x"]}, 422),
        ({"photos": [987_654_321]}, 404),
        ({"photos": list(range(501))}, 413),
    ):
        refused = client.post("/api/export", json=body)
        assert refused.status_code == status and refused.json()["detail"].endswith("."), refused.text


def test_pages_of_one_file_are_shown_one_by_one_and_taken_away_as_the_file(tmp_path: Path, cairn: Cairn) -> None:
    (tmp_path / "photos").mkdir()
    book = write_book(tmp_path / "photos" / "book.tif")
    photo("page").save(tmp_path / "photos" / "a.png")
    cairn("index", tmp_path / "a.cairn", book.parent, "--words", 40, "--workers", 1)
    with (
        serving(tmp_path / "a.cairn", tmp_path / "cache", bin=tmp_path / "bin") as base,
        httpx.Client(base_url=base, timeout=60, headers={"X-Cairn": "1"}) as client,
    ):
        listed = client.get("/api/photos").json()["photos"]
        assert [one["name"] for one in listed] == ["a.png", "book.tif", "book.tif#2", "book.tif#3", "book.tif#4"]
        for kind in ("thumbnail", "image"):
            shown = [client.get(f"/api/photos/{one['number']}/{kind}") for one in listed]
            assert all(one.status_code == 200 for one in shown) and len({one.content for one in shown}) == 5
        found = client.get("/api/search", params={"q": listed[3]["number"]}).json()["results"]
        assert (found[0]["name"], found[0]["page"]) == ("book.tif#3", 3)
        answer = client.post("/api/export", json={"photos": [one["number"] for one in listed[2:]]})
        packed = zipfile.ZipFile(io.BytesIO(answer.content))
        assert packed.namelist() == ["book.tif"] and packed.read("book.tif") == book.read_bytes()
        refused = client.post("/api/bin", json={"photos": [listed[3]["number"]]})
        assert "choose all 4 pages" in refused.text
        chosen = [one["number"] for one in listed[1:]]
        binned = client.post("/api/bin", json={"photos": chosen}).json()
        assert [one["number"] for one in binned["moved"]] == chosen and not book.exists()
        (kept,) = client.get("/api/bin").json()
        assert {one["id"] for one in binned["moved"]} == {kept["id"]} and kept["name"] == "book.tif"
        assert client.get(f"/api/bin/{kept['id']}/picture").status_code == 200
        back = client.post("/api/bin/back", json={"entries": [kept["id"]]}).json()
        assert [one["number"] for one in back["moved"]] == chosen and back["job"] is None
        assert client.get("/api/photos").json()["photos"] == listed
        book.write_bytes(book.read_bytes() + b"more")
        answer = client.post("/api/export", json={"photos": [listed[3]["number"]]})
        assert "no longer there, or has changed" in answer.json()["detail"]
        assert client.get(f"/api/photos/{listed[3]['number']}/image").status_code == 410
    assert book.is_file()


@pytest.mark.slow
def test_a_server_may_keep_files_to_itself(indexed: Indexed, tmp_path: Path) -> None:
    with serving(indexed.folder, tmp_path / "cache", exports=ExportOptions(files=False)) as address:
        assert httpx.get(f"{address}/api/health").json()["originals"] is False
        refused = httpx.post(f"{address}/api/export", json={"photos": [0]}, headers={"X-Cairn": "1"})
        assert refused.status_code == 403 and "--originals" in refused.json()["detail"]


@pytest.mark.slow
def test_limits_of_a_server_are_its_options(indexed: Indexed, tmp_path: Path) -> None:
    for options, status, said in (
        (ExportOptions(requests=0), 503, "busy"),
        (ExportOptions(bytes=1000), 413, "select fewer"),
        (ExportOptions(photos=1), 413, "at once"),
    ):
        with (
            serving(indexed.folder, tmp_path / "cache", exports=options) as base,
            httpx.Client(base_url=base, timeout=60, headers={"X-Cairn": "1"}) as client,
        ):
            numbers = [photo["number"] for photo in client.get("/api/photos", params={"limit": 2}).json()["photos"]]
            refused = client.post("/api/export", json={"photos": numbers})
            assert refused.status_code == status and said in refused.json()["detail"], refused.text


def test_a_contact_sheet_is_a_pdf(client: httpx.Client) -> None:
    photos = client.get("/api/photos", params={"limit": 3}).json()["photos"]
    answer = client.post("/api/export", json={"photos": [photo["number"] for photo in photos], "form": "sheet"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-disposition"] == 'attachment; filename="contact-sheet.pdf"'
    assert answer.content.startswith(b"%PDF") and answer.content.count(b"/Type /Page\n") == 1
    for body in ({"photos": list(range(121)), "form": "sheet"}, {"photos": [1], "form": "tar"}):
        refused = client.post("/api/export", json=body)
        assert refused.status_code in (413, 422) and refused.json()["detail"].endswith("."), refused.text


@pytest.mark.parametrize("fonts", [True, False])
def test_captions_fit_and_pages_are_as_many_as_needed(fonts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not fonts:
        monkeypatch.setattr(sheets, "_FONTS", ())
    font = sheets.find_font()
    if fonts and font is None:
        pytest.skip("this system has none of the fonts")
    measure = (font or ImageFont.load_default(17)).getlength
    for caption in HOSTILE:
        fitted = sheets.fit_caption(caption, font, 240)
        assert fitted.isprintable() and measure(fitted) <= 240
    long = sheets.fit_caption("Holiday in the south of France, summer of 1998, roll 3, frame 17.jpg", font, 240)
    assert long.startswith("Holiday") and long.endswith("frame 17.jpg") and ("…" if font else "...") in long
    german = "Straße nach Köln, näher"
    assert sheets.fit_caption(german, font, 240) == (german if font else "Strasse nach Koeln, naeher")
    picture = io.BytesIO()
    Image.new("RGB", (512, 1), "teal").save(picture, "JPEG")
    shown = [(picture.getvalue() if place else None, caption) for place, caption in enumerate(HOSTILE[:25])]
    sheet = sheets.contact_sheet(shown)
    assert sheet.startswith(b"%PDF") and sheet.count(b"/Type /Page\n") == 2  # 24 on the first
