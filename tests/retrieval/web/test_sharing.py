"""Links to albums by the API, and what a visitor who has one is shown: that album at viewing size, and nothing else."""

import asyncio
import hashlib
import io
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from retrieval.collection.collection import Collection
from retrieval.curation.albums import make_album
from retrieval.curation.sharing import FILE
from retrieval.state.folder import STATE
from retrieval.state.tokens import new_token
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import PasswordEntry, change_entry
from retrieval.web.access.roles import Role
from tests.conftest import Indexed
from tests.support.live import client_of, import_by_name, serving

STRANGER = "203.0.113.7"


class Server:
    """A served copy with two albums, whose owner and reader have tokens."""

    def __init__(self, address: str, folder: Path, state: Path, tokens: dict[str, str]) -> None:
        self.address, self.folder, self.state = address, folder, state
        self.owner, self.reader, self.visitor = (client_of(address) for _ in range(3))
        self.owner.headers["Authorization"] = f"Bearer {tokens['owner']}"
        self.reader.headers["Authorization"] = f"Bearer {tokens['reader']}"

    def share(self, album: int = 1, days: int = 7) -> dict[str, Any]:
        """Make a link."""
        answer = self.owner.post(f"/api/albums/{album}/shared", json={"days": days})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())


@pytest.fixture(scope="module")
def server(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("shared")
    folder = Path(shutil.copytree(indexed.folder, root / "demo.cairn"))
    with Collection.open(folder) as collection:
        collection.catalogue.write(make_album, "Cups & <i>more</i>", [2, 1])
        collection.catalogue.write(make_album, "Private", [3])
        names = {number: name for number, name, _ in collection.catalogue.places()}
        import_by_name(collection, {names[2]: {"title": ["A <b>cup</b>"], "latitude": ["52.5"], "longitude": ["13.4"]}})
    tokens = {}
    for name, role in (("owner", Role.WRITE), ("reader", Role.READ)):
        tokens[name], kept = new_token()
        change_entry(root / "passwords", name, token=True, entry=PasswordEntry(name, role, kept))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE, str(root / "state"))
        with serving(folder, root / "cache", access=AccessOptions(password_file=root / "passwords")) as address:
            yield Server(address, folder, root / "state", tokens)


def test_a_visitor_sees_the_photos_of_the_album_at_viewing_size(server: Server) -> None:
    path = server.share()["path"]
    page = server.visitor.get(path)
    assert (
        page.status_code == 200
        and page.headers["cache-control"] == "no-store"
        and "noindex" in page.headers["x-robots-tag"]
    )
    assert "Cups &amp; &lt;i&gt;more&lt;/i&gt;" in page.text and "A &lt;b&gt;cup&lt;/b&gt;" in page.text
    assert page.text.count("<img src=") == 3  # the mark of the page, and two photos
    assert (
        "<script" not in page.text and "52.5" not in page.text and ".jpg" not in page.text
    )  # no place, no file's name
    one = server.visitor.get(f"{path}/1")
    assert one.status_code == 200 and f'href="{path}/2"' in one.text and f"{path}/1/large" in one.text
    for size in ("small", "large"):
        picture = server.visitor.get(f"{path}/1/{size}")
        assert picture.headers["content-type"] == "image/jpeg"
        with Image.open(io.BytesIO(picture.content)) as image:
            assert not image.getexif() and max(image.size) <= 1600
            assert not {"exif", "xmp", "photoshop"} & image.info.keys()
    german = server.visitor.get(f"{path}/1", headers={"Accept-Language": "de"})
    assert "Nächstes Foto" in german.text


def test_a_visitor_sees_nothing_else(server: Server) -> None:
    token = server.share()["path"].rpartition("/")[2]
    path = f"/shared/{token}"
    for place in ("0", "3", "-1", "99999999999999999999", "x"):
        for rest in ("", "/large", "/small"):
            assert server.visitor.get(f"{path}/{place}{rest}").status_code in (404, 422), place
    for other in (
        "/",
        "/api/photos",
        "/api/photos/2",
        "/api/photos/2/image",
        "/api/albums",
        "/api/shared",
        "/album?album=1",
        "/search",
    ):
        for headers in ({}, {"Authorization": f"Bearer {token}"}, {"Cookie": f"token={token}"}):
            assert server.visitor.get(other, headers=headers).status_code in (303, 401), other
    for rest in (
        "/../../api/photos",
        "/%2e%2e/%2e%2e/api/photos",
        "//api/photos",
        "/1/original",
        "/1/file",
        "/1/image?size=4096",
        "/api/photos",
    ):
        answer = server.visitor.get(f"{path}{rest}")
        assert answer.status_code in (401, 404, 422), rest
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert server.visitor.request(method, path).status_code == 405
    assert server.visitor.get(f"{path}?page=99").status_code == 200


def test_links_that_are_over_ended_or_of_another_collection_open_nothing(server: Server) -> None:
    made = server.share()
    assert server.visitor.get("/shared/cairn_" + 43 * "x").status_code == 404
    assert server.owner.get("/shared/cairn_" + 43 * "x").status_code == 404
    file = server.state / FILE
    kept = json.loads(file.read_text())
    assert made["path"].rpartition("/")[2] not in file.read_text()

    def changed(**fields: Any) -> httpx.Response:
        links = [one | fields for one in kept["links"]]
        file.write_text(json.dumps({"links": links}))
        return server.visitor.get(f"{made['path']}/1/large")

    yesterday = (datetime.now(UTC).date() - timedelta(1)).isoformat()
    over = changed(expires=yesterday)
    assert over.status_code == 410 and yesterday in over.json()["detail"]
    assert changed(identity="0" * 32).status_code == 404
    assert changed(collection="/elsewhere/demo.cairn").status_code in (403, 404)
    assert changed(album=99).status_code == 404
    assert changed().status_code == 200
    assert server.owner.delete(f"/api/shared/{made['id']}").json()["name"] == "Cups & <i>more</i>"
    assert server.visitor.get(f"{made['path']}/1/large").status_code == 404
    assert server.owner.delete(f"/api/shared/{made['id']}").status_code == 404


def test_owners_list_and_end_links_and_readers_do_not(server: Server) -> None:
    made = server.share(album=2, days=0)
    (listed,) = server.owner.get("/api/shared", params={"album": 2}).json()["links"]
    assert listed == {name: value for name, value in made.items() if name != "path"}
    assert (listed["name"], listed["over"], listed["by"]) == ("Private", False, "owner")
    assert server.reader.get("/api/shared").status_code == 403
    assert server.reader.post("/api/albums/2/shared", json={}).status_code == 403
    assert server.reader.delete(f"/api/shared/{made['id']}").status_code == 403
    assert server.owner.post("/api/albums/99/shared", json={}).status_code == 404
    assert server.owner.post("/api/albums/2/shared", json={"days": 100_000}).status_code == 422


def test_a_photo_that_is_taken_out_or_hidden_is_no_longer_shown(server: Server) -> None:
    path = server.share(album=2)["path"]
    assert server.visitor.get(f"{path}/1/small").status_code == 200
    server.owner.post("/api/hidden", json={"photos": [3]})
    assert server.visitor.get(f"{path}/1/small").status_code == 404
    server.owner.post("/api/hidden/show", json={"photos": [3]})
    assert server.visitor.get(f"{path}/1/small").status_code == 200
    server.owner.post("/api/albums/2/remove", json={"photos": [3]})
    assert server.visitor.get(f"{path}/1/small").status_code == 404
    server.owner.post("/api/albums/2/photos", json={"photos": [3]})


def test_a_link_on_a_shelf_leads_to_its_collection_alone(server: Server, tmp_path: Path) -> None:
    from retrieval.web.service import ServeOptions
    from retrieval.web.shelf.app import create_shelf_app

    home = server.folder.parent
    shutil.copytree(server.folder, home / "other.cairn")
    token = server.share()["path"].rpartition("/")[2]
    access = AccessOptions(password_file=home / "passwords")

    async def visit() -> None:
        app = create_shelf_app(home, ServeOptions(access=access))
        transport = httpx.ASGITransport(app, client=(STRANGER, 50000))
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as ask:
            shown = await ask.get(f"/c/demo.cairn/shared/{token}")
            assert shown.status_code == 200 and f'href="/c/demo.cairn/shared/{token}/1"' in shown.text
            for path in (f"/c/other.cairn/shared/{token}", f"/c/none.cairn/shared/{token}", f"/shared/{token}"):
                assert (await ask.get(path)).status_code == 404, path
            for name in ("demo.cairn", "none.cairn"):  # a stranger is not told which collections there are
                assert (await ask.get(f"/c/{name}/shared/cairn_x")).status_code == 404
                assert (await ask.get(f"/c/{name}/api/photos")).status_code == 401

    asyncio.run(visit())
    shutil.rmtree(home / "other.cairn")


def test_pictures_have_nothing_of_a_file_but_its_pixels(tmp_path: Path) -> None:
    """A photo with a place: neither size of it has that, whatever the file says."""
    from retrieval.web.jobs import PictureJobs

    path = tmp_path / "here.jpg"
    exif = Image.Exif()
    exif[0x010E] = "SECRET"  # ImageDescription
    exif[0x8825] = {1: "N", 2: (52.0, 31.0, 0.0), 3: "E", 4: (13.0, 24.0, 0.0)}  # GPS
    Image.effect_noise((300, 200), 60).save(path, exif=exif)
    assert b"SECRET" in path.read_bytes()
    asked = {"path": str(path), "name": "here.jpg", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    asked |= {"cache": str(tmp_path / "cache"), "max_pixels": 10**6}
    for job, size in (("image", 1600), ("thumbnail", 256)):
        _, made = PictureJobs().do(job, {**asked, "size": size})
        assert b"SECRET" not in made and b"Exif" not in made
        with Image.open(io.BytesIO(made)) as image:
            assert image.format == "JPEG" and not image.getexif()
