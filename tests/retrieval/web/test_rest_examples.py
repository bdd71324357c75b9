"""Every example of the HTTP reference does what it says, sent by curl to a real server as it stands on the page."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.web.access.options import AccessOptions
from retrieval.web.app import create_app
from scripts.documentation.rest_reference import MARK, PAGE
from tests.conftest import Indexed
from tests.support.live import serving_copy

ADDRESS = "http://127.0.0.1:8000"
EXAMPLES = re.findall(r"^curl .*$", PAGE.read_text(encoding="utf-8").partition(MARK)[0], re.MULTILINE)


def test_examples_of_the_reference_are_answered(indexed: Indexed, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the command curl is not there")
    asked = tmp_path / "asked"
    asked.mkdir()
    shutil.copy(sorted(indexed.photos.iterdir())[0], asked / "church.jpg")
    said: dict[str, str] = {}
    with serving_copy(indexed.folder, tmp_path / "served", access=AccessOptions()) as (address, _):
        for example in EXAMPLES:
            assert ADDRESS in example
            command = shlex.split(example.replace(ADDRESS, address), comments=True)
            # Events come for as long as one listens.
            limit = ["--max-time", "1"] if "-N" in command else ["--fail-with-body"]
            done = subprocess.run([*command, "-sS", *limit], cwd=asked, capture_output=True, text=True, check=False)
            assert done.returncode == (28 if "-N" in command else 0), (example, done.stdout, done.stderr)
            said[example] = done.stdout
    searched = [json.loads(one) for example, one in said.items() if "/api/search" in example]
    assert len(searched) == 2 and all(one["results"] for one in searched)
    explained = next(json.loads(one) for example, one in said.items() if "/api/match" in example and "-F" in example)
    assert explained["photo"]["number"] == 2
    assert (asked / "match.csv").read_text().startswith("query_x,")
    assert all((asked / name).read_bytes().startswith(b"\xff\xd8") for name in ("photo.jpg", "small.jpg"))
    (events,) = (one for example, one in said.items() if "-N" in example)
    told = [json.loads(line.removeprefix("data: ")) for line in events.splitlines() if line.startswith("data: ")]
    assert any(job["kind"] == "check" for one in told for job in one["jobs"])


def test_the_document_declares_headers_and_pictures(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "empty.cairn", CollectionOptions(signature="none")):
        pass
    document = create_app(tmp_path / "empty.cairn").openapi()
    assert all("__" not in name for name in document["components"]["schemas"])  # two models of one name
    paths = document["paths"]
    for path, ways in paths.items():
        for method, operation in ways.items():
            headers = [one["name"] for one in operation["parameters"] if one["in"] == "header"]
            assert headers == ([] if method == "get" else ["X-Cairn"]), (method, path)
            for answer in operation["responses"].values():
                assert all(content["schema"] for content in answer.get("content", {}).values()), (method, path)
    picture = paths["/api/photos/{number}/image"]["get"]["responses"]["200"]["content"]["image/jpeg"]
    assert picture["schema"] == {"type": "string", "format": "binary"}
    assert set(paths["/api/match"]["get"]["responses"]["200"]["content"]) == {
        "application/json",
        "text/csv",
        "image/jpeg",
    }
