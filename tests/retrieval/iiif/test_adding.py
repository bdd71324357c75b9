"""Photos of a collection that come from manifests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import cairn
from tests.support.iiif_server import IiifServer, Reply

HOSTS = ("127.0.0.1",)


def _book(server: IiifServer) -> str:
    random = np.random.default_rng(4)
    for number in range(3):
        spots = random.integers(0, 255, (30, 24, 3), dtype=np.uint8)
        server.pictures[f"p{number}"] = Image.fromarray(spots).resize((192, 240), Image.Resampling.BICUBIC)
    pairs = {"Author": "Sebastian Brant", "Date": "1494", "Title": "Das Narren schyff", "Subject": "Fools; Satire"}
    more = {
        "metadata": [{"label": {"en": [label]}, "value": {"none": [value]}} for label, value in pairs.items()],
        "rights": "http://rightsstatements.org/vocab/NoC/1.0/",
        "requiredStatement": {"label": {"en": ["Credit"]}, "value": {"en": ["A library"]}},
    }
    manifest = server.manifest("/m", {"p0": "f. 1r", "p1": "f. 1v", "p2": "f. 2r"}, **more)
    return server.add_json("/m", manifest)


def test_pages_are_photos_with_what_the_manifest_says(server: IiifServer, tmp_path: Path) -> None:
    address = _book(server)
    with cairn.create(tmp_path / "c", max_side=160, words=50) as collection:
        added = collection.add(address, allow_hosts=HOSTS, workers=1)
        (reported,) = added.manifests
        assert (added.added, reported["fetched"], reported["reason"]) == (3, 3, "")
        names = sorted(photo.name for photo in collection)
        assert [name.rpartition("/")[2] for name in names] == ["0001-f._1r.jpg", "0002-f._1v.jpg", "0003-f._2r.jpg"]
        photo = collection.photos(where={"words": "brant 1v"})[0]
        assert photo.title == "Ship of Fools, f. 1v" and photo.taken == "1494" and photo.tags == ("Fools", "Satire")
        assert dict(photo.others) == {
            "Attribution": ("A library",),
            "Author": ("Sebastian Brant",),
            "IIIF canvas": (f"{server.address}/canvas/p1",),
            "IIIF manifest": (address,),
            "Item": ("Ship of Fools",),
            "Page": ("f. 1v",),
            "Page order": ("2",),
            "Rights": ("http://rightsstatements.org/vocab/NoC/1.0/",),
            "Title (column)": ("Das Narren schyff",),
        }
        assert len(collection.photos(where={"where": [("Author", "sebastian brant")]})) == 3
        assert [one.name for one in collection.photos(where={"pages": "2-"})] == names[1:]

        revision = collection.opened.catalogue.revision()
        assert collection.add(address, allow_hosts=HOSTS, workers=1).unchanged == 3
        assert collection.opened.catalogue.revision() == revision  # nothing is written

        server.pictures["p1"] = server.pictures["p1"].rotate(180)  # at the same address
        checked = collection.add(address, allow_hosts=HOSTS, workers=1, check_pictures=True)
        assert [(one["fetched"], one["unchanged"]) for one in checked.manifests] == [(1, 2)]
        assert (checked.added, checked.unchanged) == (1, 2)

        collection.edit([photo.name], title="My own title")
        changed = server.manifest(
            "/m",
            {"p0": "f. 1r", "p1": "f. 1v"},
            metadata=[{"label": {"en": ["Author"]}, "value": {"none": ["Brant, S."]}}],
        )
        server.add_json("/m", changed)
        (reported,) = collection.add(address, allow_hosts=HOSTS, workers=1).manifests
        assert reported["withdrawn"] == [names[2]] and len(collection) == 3
        photo = collection.photos(where={"words": "1v"})[0]
        assert photo.title == "My own title" and photo.others["Author"] == ("Brant, S.",)


def test_pages_go_into_the_folder_that_is_named_and_lists_are_read(
    server: IiifServer, tmp_path: Path, cairn: Callable[..., Any]
) -> None:
    address = _book(server)
    books, pages = tmp_path / "books.txt", tmp_path / "pages"
    books.write_text(f"# my books\n\n{address}\n")
    reported = [
        "--manifests",
        books,
        "--iiif-folder",
        pages,
        "--allow-host",
        "127.0.0.1",
        "--max-side",
        160,
        "--words",
        50,
    ]
    ran = cairn("index", tmp_path / "c", *reported, "--json")
    assert ran.code == 0 and ran.json["added"] == 3 and ran.json["manifests"][0]["pages"] == 3
    assert len(list(pages.rglob("*.jpg"))) == 3 and not (tmp_path / "c" / "uploads").exists()
    server.files.clear()
    assert cairn("index", tmp_path / "c", *reported[:6], "--strict").code == 1
    ran = cairn("index", tmp_path / "c", *reported[:6])
    assert ran.code == 0 and "the manifest was withdrawn, its pages stay" in ran.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    (
        (["http://127.0.0.1:9/m"], "no address on the public Internet: --allow-host 127.0.0.1 allows it."),
        (["https://user:secret@example.org/m"], "has a user name in it"),
        (["https://example.org/m", "--watch"], "--watch cannot be used with addresses"),
        (["--ignore-robots", "example.org", "."], "need the address of a manifest"),
        (["--iiif-folder", "x", "."], "need the address of a manifest"),
        (["--manifests", "none.txt"], "There is no list of manifests 'none.txt'"),
        (["--manifests", "odd.txt"], "Line 2 of odd.txt is no address"),
        (["https://example.org/m", "--ignore-robots", "https://a"], "'https://a' is not the name of a host"),
        (["https://example.org/m", "--allow-host", "a/b"], "'a/b' is not the name of a host"),
    ),
)
def test_what_cannot_be_met_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, cairn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.txt").write_text("https://example.org/1\nfile:///etc/passwd\n")
    ran = cairn("index", "c", *arguments)
    assert ran.code == 2 and sentence in ran.err and ran.err.count("\n") == 1
    assert not Path("c").exists()


def test_an_address_that_gives_no_manifest_is_refused(server: IiifServer, tmp_path: Path) -> None:
    address = server.add_json("/m", {"type": "Canvas"})
    with (
        cairn.create(tmp_path / "c") as collection,
        pytest.raises(cairn.CairnError, match="not a manifest or collection"),
    ):
        collection.add(address, allow_hosts=HOSTS)


def test_what_a_library_gives_after_signing_in_is_told_and_a_token_is_sent_to_it_alone(
    server: IiifServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = _book(server)
    manifest = json.loads(server.files["/m"].content)
    probe = {"id": f"{server.address}/probe", "type": "AuthProbeService2"}
    for canvas in manifest["items"]:
        canvas["items"][0]["items"][0]["body"]["service"].append(probe)
    manifest["items"][2]["items"][0]["items"][0]["body"]["service"] = [  # a picture at another host
        {"id": f"{server.address.replace('127.0.0.1', 'localhost')}/image/p2", "type": "ImageService3"}
    ]
    server.add_json("/m", manifest)
    plain, statuses, sent = server.reply, {"p0": 401, "p1": 403}, []

    def guarded(path: str, headers: Any) -> Reply:
        sent.append((headers["Host"].partition(":")[0], headers.get("Authorization")))
        status = next((status for name, status in statuses.items() if f"/image/{name}/full" in path), 200)
        return plain(path, headers) if status == 200 or headers.get("Authorization") else Reply(status=status)

    server.reply = guarded  # type: ignore[method-assign]
    with cairn.create(tmp_path / "c", max_side=160, words=50) as collection:
        (reported,) = collection.add(address, allow_hosts=(*HOSTS, "localhost"), workers=1).manifests
        assert reported["fetched"] == 1 and [one["page"] for one in reported["failed"]] == ["f. 1r", "f. 1v"]
        for one, status in zip(reported["failed"], (401, 403), strict=True):
            assert f"(status {status}): its library has people sign in" in one["reason"]
            assert one["reason"].endswith("CAIRN_IIIF_TOKENS=127.0.0.1=TOKEN")
        assert {token for _, token in sent} == {None}
        sent.clear()
        monkeypatch.setenv("CAIRN_IIIF_TOKENS", "127.0.0.1=s3cret")
        (reported,) = collection.add(address, allow_hosts=(*HOSTS, "localhost"), workers=1).manifests
        assert reported["fetched"] == 2 and {*sent} <= {("127.0.0.1", "Bearer s3cret"), ("localhost", None)}
        monkeypatch.setenv("CAIRN_IIIF_TOKENS", "s3cret")
        with pytest.raises(cairn.CairnError, match="HOST=TOKEN"):
            collection.add(address, allow_hosts=HOSTS)
