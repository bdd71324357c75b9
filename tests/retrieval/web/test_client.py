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

from retrieval.web.access.options import AccessOptions
from tests.conftest import Indexed
from tests.support.live import serving_copy

GENERATOR = shutil.which("openapi-python-client")

USE = r"""
import json
import sys
from client import Client
from client.api.jobs import begin_job
from client.api.photos import health, image, photos, thumbnail
from client.api.saved_searches import delete_search, save_search
from client.api.search import match_upload, search, search_uploads
from client.models import Jobs, MatchRequest, MatchUploadBody, NewSearch, Plain, SaveSearchBody, SearchRequest
from client.models import SearchUploadsBody
from client.types import File
one = Client(base_url=sys.argv[1])
assert health.sync(client=one).status == "ok"
listed = photos.sync(client=one, limit=2)
found = search.sync(client=one, q=[str(listed.photos[0].number)], turns=1)
assert found.results[0].name == listed.photos[0].name
wanted = NewSearch.from_dict({"name": "Mine", "queries": [{"photo": listed.photos[0].number}]})
kept = save_search.sync(client=one, body=SaveSearchBody(request=wanted))
assert kept.name == "Mine"
here = photos.sync(client=one, limit=2).photos[0]
picture = image.sync_detailed(here.number, client=one)
assert picture.headers["content-type"] == "image/jpeg" and picture.content.startswith(b"\xff\xd8")
assert thumbnail.sync_detailed(here.number, client=one).content.startswith(b"\xff\xd8")
upload = lambda: [File(payload=open(sys.argv[2], "rb"), file_name="church.jpg", mime_type="image/jpeg")]
asked = SearchRequest.from_dict({"queries": [{"upload": 0}], "top": 3, "turns": 1})
found = search_uploads.sync(client=one, body=SearchUploadsBody(request=asked, photos=upload()))
assert found.results[0].name == listed.photos[0].name and found.results[0].found
asked = MatchRequest.from_dict({"queries": [{"upload": 0}], "photo": here.number})
assert match_upload.sync(client=one, body=MatchUploadBody(request=asked, photos=upload())).inliers
job = begin_job.sync(client=one, body=Plain.from_dict({"kind": "check"}))
with one.get_httpx_client().stream("GET", "/api/jobs/events") as events:
    for line in events.iter_lines():
        if line.startswith("data: "):
            told = Jobs.from_dict(json.loads(line.removeprefix("data: "))).jobs
            if any(work.id == job.id and work.state == "done" for work in told):
                break
    else:
        raise AssertionError("the job has not ended")
assert delete_search.sync_detailed(search=kept.id, client=one).status_code == 204
"""


@pytest.mark.slow
@pytest.mark.skipif(GENERATOR is None, reason="the command openapi-python-client is not there")
def test_a_client_made_from_the_document_searches_and_saves(indexed: Indexed, tmp_path: Path) -> None:
    """With uploads, too; and it follows a job, and fetches pictures. It sends what the document asks for, by itself."""
    assert GENERATOR is not None
    with serving_copy(indexed.folder, tmp_path / "served", access=AccessOptions()) as (address, _):
        use_client(address, sorted(indexed.photos.iterdir())[0], tmp_path)


def use_client(address: str, photo: Path, tmp_path: Path) -> None:
    assert GENERATOR is not None
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(httpx.get(f"{address}/api/openapi.json").json()))
    command = [GENERATOR, "generate", "--path", document, "--meta", "none", "--output-path", tmp_path / "client"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "Unable to parse" not in done.stdout and "will not be generated" not in done.stdout, done.stdout
    subprocess.run([sys.executable, "-c", USE, address, photo], cwd=tmp_path, timeout=120, check=True)
