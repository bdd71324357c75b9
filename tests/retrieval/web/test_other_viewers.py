"""Viewers of libraries show what a collection is served as.

CAIRN_MIRADOR names Mirador's `dist/mirador.min.js`, and CAIRN_UNIVERSAL_VIEWER the folder `dist` of Universal Viewer,
from their packages for npm.
"""

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
from tests.support.browser import PATIENCE, chromium  # noqa: F401
from tests.support.file_server import FileServer, serve_files
from tests.support.live import client_of, serving

pytestmark = [pytest.mark.slow, pytest.mark.browser]
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
def elsewhere() -> Iterator[FileServer]:
    """Another server, for a viewer."""
    with serve_files() as server:
        yield server


@pytest.fixture
def mirador(elsewhere: FileServer) -> str:
    """Address of a page that runs Mirador, without what it shows."""
    if "CAIRN_MIRADOR" not in os.environ:
        pytest.skip("CAIRN_MIRADOR does not name Mirador's program")
    elsewhere.add("mirador.js", Path(os.environ["CAIRN_MIRADOR"]).read_bytes())
    return elsewhere.add("index.html", PAGE.encode()) + "#"


@pytest.fixture
def universal_viewer(elsewhere: FileServer) -> str:
    """Address of Universal Viewer, without what it shows."""
    if "CAIRN_UNIVERSAL_VIEWER" not in os.environ:
        pytest.skip("CAIRN_UNIVERSAL_VIEWER does not name the folder of Universal Viewer")
    folder = Path(os.environ["CAIRN_UNIVERSAL_VIEWER"])
    for file in (*folder.glob("uv.*"), *folder.glob("umd/*.js"), *folder.glob("umd/*.css")):
        elsewhere.add(file.relative_to(folder).as_posix(), file.read_bytes())
    return f"{elsewhere.address}/uv.html#?manifest="


@pytest.fixture
def window(chromium: Any) -> Iterator[Any]:  # noqa: F811
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(PATIENCE)
        yield context.new_page()


def is_part(answer: Any) -> bool:
    """Whether a viewer got a part of a photo."""
    return "/api/iiif/" in answer.url and answer.url.endswith(".jpg")


@pytest.mark.parametrize("shown", ("answer", "group"))
def test_mirador_shows_photos_with_the_regions_that_match(
    shown: str, window: Any, mirador: str, elsewhere: FileServer, indexed: Indexed, tmp_path: Path
) -> None:
    folder = shutil.copytree(indexed.folder, tmp_path / "demo.cairn")
    with Collection.open(folder) as collection:
        group_photos(collection)
    access = AccessOptions(cors=(elsewhere.address,))
    with serving(folder, tmp_path / "cache", access=access) as base, client_of(base) as client:
        number = client.get("/api/photos?name=coffee").json()["photos"][0]["number"]
        asked = {"answer": f"search/manifest.json?q={number}", "group": "groups/1/manifest.json"}
        manifest = f"{base}/api/iiif/{asked[shown]}"
        found = client.get(manifest).json()
        refused = []
        window.on("response", lambda answer: answer.status >= 400 and refused.append(answer.url))
        # It asks for pictures some time after it has shown the texts.
        with window.expect_response(is_part) as picture:
            window.goto(mirador + quote(manifest, safe=""))
        assert picture.value.status == 200
        window.get_by_text(found["label"]["en"][0]).first.wait_for()
        (notes,) = found["items"][0]["annotations"]
        marked = (notes.get("items") or client.get(notes["id"]).json()["items"])[0]
        said = marked["body"]["value"] if shown == "answer" else marked["body"][1]["value"]
        window.get_by_text(said).first.wait_for()
    assert not [address for address in refused if address.startswith(base)]


def test_universal_viewer_shows_the_photos_of_a_manifest(
    window: Any, universal_viewer: str, elsewhere: FileServer, indexed: Indexed, tmp_path: Path
) -> None:
    access = AccessOptions(cors=(elsewhere.address,))
    with serving(indexed.folder, tmp_path / "cache", access=access) as base, client_of(base) as client:
        manifest = f"{base}/api/iiif/manifest.json"
        for place, canvas in enumerate(client.get(manifest).json()["items"][:2]):
            part = f"{canvas['id'].removesuffix('/canvas')}/"
            with window.expect_response(lambda one, part=part: is_part(one) and one.url.startswith(part)) as picture:
                if place:
                    window.get_by_role("button", name="Next").first.click()
                else:
                    window.goto(universal_viewer + quote(manifest, safe=""))
            assert picture.value.status == 200
            window.get_by_text(canvas["label"]["none"][0]).first.wait_for()


def test_people_sign_in_from_mirador(
    window: Any,
    mirador: str,
    elsewhere: FileServer,
    indexed: Indexed,
    password_file: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    access = AccessOptions(password_file=password_file, cors=(elsewhere.address,), open_manifests=True)
    folder = shutil.copytree(indexed.folder, tmp_path / "demo.cairn")
    with serving(folder, tmp_path / "cache", access=access) as base:
        window.goto(mirador + quote(f"{base}/api/iiif/manifest.json", safe=""))
        with window.expect_popup() as opened:
            window.get_by_text("Sign in", exact=True).first.click()
        popup = opened.value
        popup.get_by_label("Name").fill(ANNA[0])
        popup.get_by_label("Password").fill(ANNA[1])
        popup.get_by_role("button", name="Sign in").click(no_wait_after=True)
        window.get_by_text("Sign out").first.wait_for()
        # Mirador 4.0 asks for no picture again that it was refused: the next ones are there.
        with window.expect_response(is_part) as shown:
            window.get_by_role("button", name="Next item").click()
        assert shown.value.status == 200 and popup.is_closed()
