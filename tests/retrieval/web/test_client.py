"""A client that a generator makes from the OpenAPI document works.

The generator, openapi-python-client, wants an older Typer than Cairn has, and so an environment of its own: where its
command is found, it is tried.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

GENERATOR = shutil.which("openapi-python-client")

USE = """
import sys
from client import Client
from client.api.photos import health, photos
from client.api.saved_searches import delete_search, save_search
from client.api.search import search
from client.models import NewSearch, SaveSearchBody
one = Client(base_url=sys.argv[1], headers={"X-Cairn": "1"})
assert health.sync(client=one).status == "ok"
listed = photos.sync(client=one, limit=2)
found = search.sync(client=one, q=[str(listed.photos[0].number)], turns=1)
assert found.results[0].name == listed.photos[0].name
wanted = NewSearch.from_dict({"name": "Mine", "queries": [{"photo": listed.photos[0].number}]})
kept = save_search.sync(client=one, body=SaveSearchBody(request=wanted))
assert kept.name == "Mine"
assert delete_search.sync_detailed(search=kept.id, client=one).status_code == 204
"""


@pytest.mark.slow
@pytest.mark.skipif(GENERATOR is None, reason="the command openapi-python-client is not there")
def test_a_client_made_from_the_document_searches_and_saves(client: httpx.Client, served: str, tmp_path: Path) -> None:
    assert GENERATOR is not None
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(client.get("/api/openapi.json").json()))
    command = [GENERATOR, "generate", "--path", document, "--meta", "none", "--output-path", tmp_path / "client"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "Unable to parse" not in done.stdout, done.stdout
    subprocess.run([sys.executable, "-c", USE, served], cwd=tmp_path, timeout=120, check=True)
