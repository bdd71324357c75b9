"""Mirador, a viewer of libraries, shows what a collection is served as; CAIRN_MIRADOR names its mirador.min.js."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from retrieval.web.access.options import AccessOptions
from tests.conftest import Indexed
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


def test_mirador_shows_an_answer_with_its_regions(
    chromium: Any,  # noqa: F811
    viewer: str,
    indexed: Indexed,
    tmp_path: Path,
) -> None:
    access, page = AccessOptions(cors=(viewer,)), chromium.new_page(viewport={"width": 1280, "height": 900})
    with serving(indexed.folder, tmp_path / "cache", access=access) as base, client_of(base) as client:
        number = client.get("/api/photos?name=coffee").json()["photos"][0]["number"]
        manifest = f"{base}/api/iiif/search/manifest.json?q={number}"
        found = client.get(manifest).json()
        pictures = []
        page.on("response", lambda answer: pictures.append((answer.status, answer.url)))
        page.goto(f"{viewer}/index.html#{quote(manifest, safe='')}")
        page.get_by_text(found["label"]["en"][0]).first.wait_for()
        (marked,) = found["items"][0]["annotations"][0]["items"]
        page.get_by_text(marked["body"]["value"]).first.wait_for()
        page.wait_for_load_state("networkidle")
    shown = [url for status, url in pictures if status == 200 and "/api/iiif/" in url and url.endswith(".jpg")]
    assert shown and all(status < 400 for status, url in pictures if url.startswith(base))
