"""Streams of changes: what they tell of is fetched once, and what is hostile in them ends."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import cairn
from retrieval.iiif import changes
from retrieval.iiif.changes import ChangeStream, read_changes, streams_from, streams_text
from retrieval.iiif.fetching import Fetcher, FetchPolicy
from retrieval.iiif.manifests import ChangePage, read_document
from tests.support.iiif_server import IiifServer, Reply

HOSTS = ("127.0.0.1",)


def _change(server: IiifServer, kind: str, name: str, day: int | None = None, **more: Any) -> dict[str, Any]:
    time = {} if day is None else {"endTime": f"2024-01-{day:02}T00:00:00Z"}
    return {"type": kind, "object": {"id": server.address + name, "type": "Manifest"}, **time, **more}


def _stream(server: IiifServer, *pages: list[dict[str, Any]]) -> str:
    """Serve a stream of pages, the oldest first."""
    for number, items in enumerate(pages):
        earlier = {"prev": {"id": f"{server.address}/page/{number - 1}"}} if number else {}
        server.add_json(f"/page/{number}", {"type": "OrderedCollectionPage", "orderedItems": items, **earlier})
    last = {"id": f"{server.address}/page/{len(pages) - 1}", "type": "OrderedCollectionPage"}
    return server.add_json("/all", {"type": "OrderedCollection", "id": f"{server.address}/all", "last": last})


def _read(server: IiifServer, address: str, stream: ChangeStream) -> tuple[list[str], list[str], list[str]]:
    """Paths of what is wanted and of what is gone, and notes."""
    notes: list[str] = []
    with Fetcher(FetchPolicy(allowed_hosts=HOSTS, attempts=1)) as fetcher:
        page = read_document(fetcher.fetch(address, 1 << 20).content)
        assert isinstance(page, ChangePage)
        gone = read_changes(address, page, stream, fetcher, notes)
    paths = [one.removeprefix(server.address) for one in (*stream.left, *(one for one in gone if gone[one]))]
    return paths[: len(stream.left)], paths[len(stream.left) :], notes


def test_the_newest_change_of_each_manifest_counts(server: IiifServer) -> None:
    here, there = ({"id": f"{server.address}{path}"} for path in ("/all", "/other"))
    pages = [
        [_change(server, "Create", one, 1) for one in ("/a", "/b", "/c")] + [_change(server, "Create", "/moved", 2)],
        [
            _change(server, "Delete", "/b", 3),
            _change(server, "Update", "/a", 4),
            _change(server, "Add", "/d", 5, target=here),
            _change(server, "Add", "/e", 5, target=there),
            _change(server, "Remove", "/a", 5, origin=there),
        ],
        [
            _change(server, "Move", "/moved", 6, target={"id": f"{server.address}/new", "type": "Manifest"}),
            _change(server, "Update", "/canvas", 6) | {"object": {"id": "http://a/", "type": "Canvas"}},
            _change(server, "Remove", "/c", 7, origin=here),
            {"type": "Update", "object": {"id": "file:///etc/passwd", "type": "Manifest"}},
        ],
    ]
    stream = ChangeStream()
    assert _read(server, _stream(server, *pages), stream) == (["/new", "/d", "/a"], ["/c", "/moved", "/b"], [])
    assert server.requested == ["/all", "/page/2", "/page/1", "/page/0"]
    assert stream.until is not None and stream.until.isoformat() == "2024-01-07T00:00:00+00:00"

    # Later: what is older than the last run is not looked at, and what is left stays.
    (stream,) = streams_from(streams_text({"s": stream})).values()
    pages += [[_change(server, "Delete", "/d", 8), _change(server, "Update", "/a", 9)]]
    server.requested.clear()
    assert _read(server, _stream(server, *pages), stream) == (["/a", "/new"], ["/d"], [])
    assert server.requested == ["/all", "/page/3", "/page/2"]


def test_before_a_refresh_deletions_alone_count(server: IiifServer) -> None:
    refresh = {"type": "Refresh", "startTime": "2024-01-03T00:00:00Z"}
    old = [_change(server, "Update", "/a", 1), _change(server, "Delete", "/b", 2)]
    address = _stream(server, old, [refresh, _change(server, "Update", "/c", 4)])
    assert _read(server, address, ChangeStream())[:2] == (["/c"], []) and "/page/0" not in server.requested
    known = streams_from('{"s": {"until": "2023-01-01T00:00:00Z", "left": []}}')["s"]
    assert _read(server, address, known)[:2] == (["/c"], ["/b"])


def test_a_stream_without_times_is_a_list(server: IiifServer) -> None:
    address = _stream(server, [_change(server, "Update", "/a")], [_change(server, "Update", "/b")])
    stream = ChangeStream()
    for _ in range(2):
        assert _read(server, address, stream) == (["/b", "/a"], [], []) and stream.until is None


def test_hostile_streams_end(server: IiifServer, monkeypatch: pytest.MonkeyPatch) -> None:
    address = _stream(server, [_change(server, "Update", "/a", 1)], [_change(server, "Update", "/b", 2)])
    circle = {"type": "OrderedCollectionPage", "prev": f"{server.address}/page/1", "orderedItems": [None, 7, {}]}
    server.add_json("/page/0", circle)
    assert _read(server, address, ChangeStream())[0] == ["/b"] and server.count("/page/") == 2

    # Times to come, or none, hide nothing later; numbers and texts in the place of others are passed over.
    odd = {"type": ["Update", {}], "object": [server.address], "target": 5, "origin": [], "endTime": 10**30}
    late = _change(server, "Update", "/b") | {"endTime": "9999-12-31T23:59:59-23:59"}
    soon = _change(server, "Update", "/c") | {"endTime": "9999-01-01T00:00:00"}
    stream = ChangeStream()
    assert _read(server, _stream(server, [odd, {"type": 7, "object": 7}, late, soon]), stream)[0] == ["/c", "/b"]
    assert stream.until is not None and stream.until.year < 9999

    for wrong in ({"type": "Manifest"}, {"type": "Collection"}, [], 7):
        server.add_json("/page/0", wrong)
        stream = ChangeStream()
        with pytest.raises(cairn.CairnError):
            _read(server, address, stream)
        assert stream == ChangeStream()

    plain = server.reply
    page = '{"type": "OrderedCollectionPage", "prev": "%s/page/%d", "orderedItems": []}'

    def endless(path: str, headers: Any) -> Any:
        reply = plain("/all", headers)
        if path.startswith("/page/"):
            reply.content = (page % (server.address, int(path[6:]) + 1)).encode()
        return reply

    server.requested.clear()
    server.reply = endless  # type: ignore[method-assign]
    monkeypatch.setattr(changes, "MOST_CHANGE_PAGES", 5)
    _, _, notes = _read(server, address, ChangeStream())
    assert notes == [f"Only the newest 5 pages of {address} were read."] and server.count("/page/") == 5
    monkeypatch.setattr(changes, "LARGEST_DOCUMENT", 50)
    with pytest.raises(cairn.CairnError, match="has more than 0 MB"):
        _read(server, address, ChangeStream())


@pytest.mark.parametrize("text", (None, "[]", "{", '{"a": 5}', '{"a": {"until": 7, "left": []}}', "[" * 100_000))
def test_what_a_collection_says_of_streams_is_not_trusted(text: str | None) -> None:
    assert streams_from(text) == {}


def test_a_collection_follows_a_stream(server: IiifServer, tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        server.pictures[name] = Image.effect_noise((160, 160), 20 + 40 * number).convert("RGB")
        server.add_json(f"/{name}", server.manifest(f"/{name}", {name: f"f. {name}"}), ETag='"1"')
    created = [_change(server, "Create", f"/{name}", 1) for name in "abc"]
    held, server.files["/b"] = server.files["/b"], Reply(status=403)
    address = _stream(server, created)
    with cairn.create(tmp_path / "c", max_side=160, words=20) as collection:
        added = collection.add(address, allow_hosts=HOSTS, workers=1)
        assert (added.added, [one["fetched"] for one in added.manifests]) == (2, [1, 0, 1])
        assert "status 403" in added.manifests[1]["reason"]

        # The next run asks for what is left, and for what has changed; what is gone is reported, and can be found.
        server.files["/b"] = held
        address = _stream(server, created, [_change(server, "Delete", "/c", 2), _change(server, "Update", "/a", 3)])
        server.add_json("/a", server.manifest("/a", {"a": "another"}), ETag='"2"')
        server.requested.clear()
        added = collection.add(address, allow_hosts=HOSTS, workers=1)
        reported = {one["manifest"].removeprefix(server.address): one for one in added.manifests}
        assert reported["/c"]["reason"] == "its library has withdrawn it, its pages stay"
        assert (reported["/b"]["fetched"], reported["/a"]["unchanged"], len(collection)) == (1, 1, 3)
        assert server.count("/c") == 0
        assert [photo.others["Page"] for photo in collection.photos(where={"words": "another"})] == [("another",)]

        revision = collection.opened.catalogue.revision()
        server.requested.clear()
        added = collection.add(address, allow_hosts=HOSTS, workers=1)
        assert (added.unchanged, [one["unchanged"] for one in added.manifests]) == (3, [1])
        assert server.requested == ["/all", "/page/1", "/a"] and collection.opened.catalogue.revision() == revision
        # A manifest that has moved takes its pages along.
        move = _change(server, "Move", "/a", 4, target={"id": f"{server.address}/z", "type": "Manifest"})
        address = _stream(server, created, [move])
        server.add_json("/z", server.manifest("/z", {"a": "another"}))
        added = collection.add(address, allow_hosts=HOSTS, workers=1)
        assert (added.added, len(added.moved), len(collection)) == (0, 1, 3)
        assert [(one["unchanged"], one["reason"]) for one in added.manifests] == [(1, "")]
        (photo,) = collection.photos(where={"words": "another"})
        assert photo.others["IIIF manifest"] == (f"{server.address}/z",) and "/z-" in photo.name

        server.add_json("/page/1", {"type": "OrderedCollectionPage", "orderedItems": []})
        (note,) = collection.add(address, allow_hosts=HOSTS, workers=1).notes
        assert note == f"{address} lists nothing to fetch since 2024-01-04 00:00:00 UTC."
