"""Mirador, a viewer of libraries, shows what a collection is served as; CAIRN_MIRADOR names its mirador.min.js."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from retrieval.collection.collection import Collection
from retrieval.groups.groups import group_photos
from retrieval.web.access.options import AccessOptions
from tests.conftest import Indexed
from tests.retrieval.web.access.conftest import ANNA, password_file, tokens  # noqa: F401
from tests.support.browser import chromium  # noqa: F401
from tests.support.file_server import serve_files
from tests.support.live import client_of, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif("CAIRN_MIRADOR" not in os.environ, reason="CAIRN_MIRADOR does not name Mirador's program"),
]
PAGE = """<!doctype html><meta charset="utf-8"><title>Viewer</title><div id="viewer"></div>
<script src="/mirador.js"></script>
<script>
    Mirador.viewer({
        id: "viewer",
        window: { defaultSideBarPanel: "annotations", sideBarOpenByDefault: true, highlightAllAnnotations: true },
        windows: [{ manifestId: decodeURIComponent(location.hash.slice(1)) }],
    });
</script>"""


@pytest.fixture
def viewer() -> Iterator[str]:
    """Another server, whose page runs Mirador."""
    with serve_files() as server:
        server.add("mirador.js", Path(os.environ["CAIRN_MIRADOR"]).read_bytes())
        server.add("index.html", PAGE.encode())
        yield server.address


@pytest.mark.parametrize("shown", ("answer", "group"))
def test_mirador_shows_photos_with_the_regions_that_match(
    shown: str,
    chromium: Any,  # noqa: F811
    viewer: str,
    indexed: Indexed,
    tmp_path: Path,
) -> None:
    folder = shutil.copytree(indexed.folder, tmp_path / "demo.cairn")
    with Collection.open(folder) as collection:
        group_photos(collection)
    access, page = AccessOptions(cors=(viewer,)), chromium.new_page(viewport={"width": 1280, "height": 900})
    with serving(folder, tmp_path / "cache", access=access) as base, client_of(base) as client:
        number = client.get("/api/photos?name=coffee").json()["photos"][0]["number"]
        asked = {"answer": f"search/manifest.json?q={number}", "group": "groups/1/manifest.json"}
        manifest = f"{base}/api/iiif/{asked[shown]}"
        found = client.get(manifest).json()
        pictures = []
        page.on("response", lambda answer: pictures.append((answer.status, answer.url)))
        page.goto(f"{viewer}/index.html#{quote(manifest, safe='')}")
        page.get_by_text(found["label"]["en"][0]).first.wait_for()
        (notes,) = found["items"][0]["annotations"]
        marked = (notes.get("items") or client.get(notes["id"]).json()["items"])[0]
        said = marked["body"]["value"] if shown == "answer" else marked["body"][1]["value"]
        page.get_by_text(said).first.wait_for()
        page.wait_for_load_state("networkidle")
    there = [url for status, url in pictures if status == 200 and "/api/iiif/" in url and url.endswith(".jpg")]
    assert there and all(status < 400 for status, url in pictures if url.startswith(base))


def test_people_sign_in_from_mirador(
    chromium: Any,  # noqa: F811
    viewer: str,
    indexed: Indexed,
    password_file: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    access = AccessOptions(password_file=password_file, cors=(viewer,), open_manifests=True)
    folder = shutil.copytree(indexed.folder, tmp_path / "demo.cairn")
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    with serving(folder, tmp_path / "cache", access=access) as base:
        page.goto(f"{viewer}/index.html#{quote(f'{base}/api/iiif/manifest.json', safe='')}")
        with page.expect_popup() as opened:
            page.get_by_text("Sign in", exact=True).first.click()
        window = opened.value
        window.get_by_label("Name").fill(ANNA[0])
        window.get_by_label("Password").fill(ANNA[1])
        window.get_by_role("button", name="Sign in").click(no_wait_after=True)
        page.get_by_text("Sign out").first.wait_for()
        # Mirador 4.0 asks for no picture again that it was refused: the next ones are there.
        with page.expect_response(lambda one: "/api/iiif/" in one.url and one.url.endswith(".jpg")) as shown:
            page.get_by_role("button", name="Next item").click()
        assert shown.value.status == 200 and window.is_closed()
