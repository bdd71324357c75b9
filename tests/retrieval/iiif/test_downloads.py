"""Downloads of manifests: what goes on, what changes, and what goes wrong."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from index.progress import silent
from retrieval.iiif import downloads
from retrieval.iiif.downloads import ManifestDownload, NeededSize, fetch_manifests, manifest_in
from retrieval.iiif.fetching import Fetcher, FetchPolicy
from tests.support.iiif_server import IiifServer, Reply


def _fetch(folder: Path, *addresses: str, side: int = 50) -> list[ManifestDownload]:
    with Fetcher(FetchPolicy(allowed_hosts=("127.0.0.1",), sleep=lambda seconds: None)) as fetcher:
        size = NeededSize(side, lambda width, height: min(side or 10_000, max(width, height)))
        return fetch_manifests(addresses, folder, fetcher, size, silent)[0]


def _files(folder: Path) -> list[str]:
    """Names of pages below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def _book(server: IiifServer, pages: int = 3) -> dict[str, Any]:
    for number in range(pages):
        server.pictures[f"p{number}"] = Image.new("RGB", (80, 100), (40 * number, 90, 200))
    manifest = server.manifest("/book/manifest.json", {f"p{number}": f"f. {number}r" for number in range(pages)})
    server.add_json("/book/manifest.json", manifest, ETag='"1"')
    return manifest


def test_pages_come_at_the_size_that_is_needed_and_are_not_asked_for_again(server: IiifServer, tmp_path: Path) -> None:
    manifest = _book(server)
    address = f"{server.address}/book/manifest.json"
    (first,) = _fetch(tmp_path, address)
    assert (first.label, first.pages, first.fetched, first.unchanged, first.failed) == ("Ship of Fools", 3, 3, 0, [])
    assert _files(tmp_path) == ["0001-f._0r.jpg", "0002-f._1r.jpg", "0003-f._2r.jpg"]
    for file in tmp_path.rglob("*.jpg"):
        with Image.open(file) as picture:
            assert picture.size == (40, 50)
    assert server.count("/full/40,/") == 3
    server.requested.clear()
    (second,) = _fetch(tmp_path, address)
    assert (second.fetched, second.unchanged) == (0, 3) and server.requested == ["/book/manifest.json"]

    # One page is new, one has another picture, one is withdrawn.
    server.pictures |= {"new": Image.new("RGB", (80, 100)), "other": Image.new("RGB", (80, 100))}
    other = server.canvas("other", "f. 1r") | {"id": manifest["items"][1]["id"]}
    server.add_json(
        "/book/manifest.json", manifest | {"items": [server.canvas("new", "cover"), manifest["items"][0], other]}
    )
    server.requested.clear()
    (third,) = _fetch(tmp_path, address)
    assert (third.pages, third.fetched, third.unchanged) == (3, 2, 1)
    assert [one.name for one in third.withdrawn] == ["0003-f._2r.jpg"]
    assert _files(tmp_path) == ["0001-cover.jpg", "0001-f._0r.jpg", "0002-f._1r.jpg", "0003-f._2r.jpg"]
    assert server.count("/image/p") == 0

    server.requested.clear()
    (larger,) = _fetch(tmp_path, address, side=80)  # for a collection that reads photos larger
    assert larger.fetched == 3 and server.count("/full/64,/") == 3
    del server.files["/book/manifest.json"]
    (gone,) = _fetch(tmp_path, address)
    assert "withdrawn" in str(gone.reason) and gone.folder is not None and len(_files(tmp_path)) == 4
    (never,) = _fetch(tmp_path, f"{server.address}/no/manifest.json")
    assert str(never.reason).endswith("(status 404)")


def test_a_run_that_was_stopped_goes_on(server: IiifServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _book(server, 6)
    saved = downloads.save_bytes
    kept: list[Path] = []

    def stop(path: Path, content: bytes) -> None:
        if path.suffix == ".jpg":
            kept.append(path)
            if len(kept) == 3:
                raise KeyboardInterrupt
        saved(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(downloads, "save_bytes", stop)
        with pytest.raises(KeyboardInterrupt):
            _fetch(tmp_path, f"{server.address}/book/manifest.json")
    assert len(_files(tmp_path)) == 2
    left, new = (kept[0].with_name(f".0009.jpg.{number}abcdef0.tmp") for number in (1, 2))
    for path in (left, new):
        path.touch()
    os.utime(left, (0, 0))
    (again,) = _fetch(tmp_path, f"{server.address}/book/manifest.json")
    assert (again.fetched, again.unchanged) == (4, 2) and len(_files(tmp_path)) == 6
    assert new.exists() and not left.exists()


def test_what_goes_wrong_with_a_page_is_told_and_nothing_is_kept_of_it(server: IiifServer, tmp_path: Path) -> None:
    _book(server, 6)
    server.files["/image/p0/full/40,/0/default.jpg"] = Reply(
        b"<html>no picture", headers={"Content-Type": "image/jpeg"}
    )
    server.files["/image/p1/full/40,/0/default.jpg"] = Reply(b"\xff\xd8\xff" + bytes(999), cut=500)
    server.files["/image/p2/full/40,/0/default.jpg"] = Reply(status=302, headers={"Location": "http://localhost:1/"})
    server.files["/image/p3/info.json"] = Reply(b'{"width": 1e999, "height": "many"}')
    server.files["/image/p3/full/max/0/default.jpg"] = Reply(status=403)
    server.files["/image/p4/info.json"] = Reply(status=404)  # the picture itself is there
    (found,) = _fetch(tmp_path, f"{server.address}/book/manifest.json")
    assert _files(tmp_path) == ["0005-f._4r.jpg", "0006-f._5r.jpg"]
    reasons = {one["page"]: str(one["reason"]) for one in found.failed}
    assert reasons.keys() == {"f. 0r", "f. 1r", "f. 2r", "f. 3r"}
    assert "no picture" in reasons["f. 0r"] and "failed" in reasons["f. 1r"] and "status 403" in reasons["f. 3r"]
    assert "no address on the public Internet" in reasons["f. 2r"]
    server.files = {"/book/manifest.json": server.files["/book/manifest.json"]}
    (again,) = _fetch(tmp_path, f"{server.address}/book/manifest.json")
    assert (again.fetched, again.unchanged, again.failed) == (4, 2, [])


def test_collections_are_walked_once_and_end(
    server: IiifServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _book(server)
    there = server.address
    circle = {"type": "Collection", "items": [{"id": f"{there}/top.json", "type": "Collection"}]}
    server.add_json("/circle.json", circle)
    members = [f"{there}/circle.json", f"{there}/book/manifest.json", f"{there}/gone", "http://10.0.0.1/m"]
    server.add_json("/top.json", {"@type": "sc:Collection", "members": [{"@id": one} for one in members]})
    found = _fetch(tmp_path, f"{there}/top.json")
    assert [one.fetched for one in found] == [3, 0, 0] and server.count("top.json") == 1
    assert "status 404" in str(found[1].reason) and "no address on the public Internet" in str(found[2].reason)

    plain = server.reply

    def endless(path: str, headers: Any) -> Reply:
        number = path.removeprefix("/page/")
        if not number.isdecimal():
            return plain(path, headers)
        return Reply(json.dumps({"type": "Collection", "next": f"{there}/page/{int(number) + 1}"}).encode())

    monkeypatch.setattr(downloads, "MOST_LISTINGS", 5)
    server.reply = endless  # type: ignore[method-assign]
    assert _fetch(tmp_path, f"{there}/page/1") == [] and server.count("/page/") == 6


def test_no_name_leads_out_of_the_folder(server: IiifServer, tmp_path: Path) -> None:
    server.pictures["p"] = Image.new("RGB", (80, 100))
    labels = ("../../../etc/passwd", "/etc/passwd", "..", "a\0b\n", "C:\\con", "book.tif#2", "x" * 5000, "")
    items = [server.canvas("p", label) | {"id": f"{server.address}/../{n}/.."} for n, label in enumerate(labels)]
    server.add_json("/..%2f..%2f/manifest", server.manifest("/", {}) | {"items": items})
    top = tmp_path / "downloads"
    (found,) = _fetch(top, f"{server.address}/..%2f..%2f/manifest")
    assert found.fetched == len(labels)
    names = _files(top)
    assert len(names) == len(labels) and all(len(name) < 100 and "#" not in name for name in names)
    assert names[:5] == ["0001-etc_passwd.jpg", "0002-etc_passwd.jpg", "0003.jpg", "0004-a_b.jpg", "0005-C_con.jpg"]
    assert list(tmp_path.iterdir()) == [top]
    assert all(len(path.relative_to(top).parts) == 3 for path in top.rglob("*.jpg"))


def test_a_folder_that_came_along_is_not_trusted(server: IiifServer, tmp_path: Path) -> None:
    _book(server)
    address = f"{server.address}/book/manifest.json"
    top, outside = tmp_path / "downloads", tmp_path / "outside.jpg"
    (found,) = _fetch(top, address)
    assert found.folder is not None
    state = json.loads((found.folder / ".iiif.json").read_text())
    first, second, third = state["pages"]
    outside.write_bytes(b"mine")
    state["pages"][first]["file"] = "../../../outside.jpg"
    state["pages"][second]["file"] = ".iiif.json"
    (found.folder / ".iiif.json").write_text(json.dumps(state))
    (found.folder / state["pages"][third]["file"]).unlink()
    (found.folder / state["pages"][third]["file"]).symlink_to(outside)
    (again,) = _fetch(top, address)
    assert again.fetched == 3 and outside.read_bytes() == b"mine"
    reported = manifest_in(found.folder)
    assert reported is not None and sorted(reported[2]) == ["0001-f._0r.jpg", "0002-f._1r.jpg", "0003-f._2r.jpg"]
    for content in ("[]", "{", '{"format": 1, "pages": 5, "address": 7}', "[" * 100_000):
        (found.folder / ".iiif.json").write_text(content)
        assert _fetch(top, address)[0].pages == 3
    (found.folder / ".manifest.json").write_text("{}")
    (mended,) = _fetch(top, address)
    assert mended.pages == 3
    elsewhere = tmp_path / "elsewhere"
    found.folder.rename(elsewhere)
    found.folder.symlink_to(elsewhere)
    (elsewhere / "0001-f._0r.jpg").unlink()
    with pytest.raises(FileExistsError):
        _fetch(top, address)
    assert not (elsewhere / "0001-f._0r.jpg").exists()


def test_a_full_disk_ends_the_run(server: IiifServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _book(server)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=downloads.SPARE))
    with pytest.raises(OSError, match="No space left"):
        _fetch(tmp_path, f"{server.address}/book/manifest.json")
    assert _files(tmp_path) == []
