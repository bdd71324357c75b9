"""Viewers of libraries at other sites: who has not signed in reads manifests, and gets pictures by signing in there."""

import html
import json
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import PasswordEntry, change_entry
from retrieval.web.access.roles import Role
from tests.conftest import Indexed
from tests.retrieval.web.access.conftest import ANNA, QUICK, hidden
from tests.support.live import serving

VIEWER = "https://viewer.example"


@pytest.fixture(scope="module")
def base(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("viewed")
    file = root / "passwords"
    change_entry(file, ANNA[0], token=False, entry=PasswordEntry(ANNA[0], Role.WRITE, QUICK.hash(ANNA[1])))
    access = AccessOptions(password_file=file, cors=(VIEWER,), open_manifests=True)
    folder = Path(shutil.copytree(indexed.folder, root / "demo.cairn"))
    with serving(folder, root / "cache", access=access) as address:
        yield address


@pytest.fixture
def stranger(base: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base, headers={"Origin": VIEWER}, timeout=60) as client:
        yield client


def message_of(answer: httpx.Response) -> dict[str, Any]:
    """What a page of the token service tells the viewer that frames it."""
    found = re.search(r'data-message="([^"]*)"', answer.text)
    assert answer.status_code == 200 and found
    told: dict[str, Any] = json.loads(html.unescape(found[1]))
    return told


def test_a_viewer_lets_people_sign_in_and_asks_what_they_may_see(stranger: httpx.Client) -> None:
    manifest = stranger.get("/api/iiif/1/manifest.json")
    assert manifest.headers["access-control-allow-origin"] == VIEWER
    if find_spec("iiif_prezi3") is not None:  # the models of the standard, where they are installed
        import_module("iiif_prezi3").Manifest(**manifest.json())
    body = manifest.json()["items"][0]["items"][0]["items"][0]["body"]
    info = stranger.get(f"{body['service'][0]['id']}/info.json").json()
    assert info["@context"][-1] == "http://iiif.io/api/image/3/context.json"
    probe, earlier = info["service"]
    named = body["service"][1]
    (access,) = probe["service"]
    assert (named["id"], named["type"]) == (probe["id"], "AuthProbeService2") and access in manifest.json()["services"]
    token, leave = access["service"]
    assert access["type"] == "AuthAccessService2" and access["profile"] == "active"
    assert (token["type"], leave["type"]) == ("AuthAccessTokenService2", "AuthLogoutService2")
    assert [earlier["@id"], earlier["service"][0]["@id"]] == [access["id"], token["id"]]

    refused = stranger.get(probe["id"])
    assert (refused.status_code, refused.json()["type"], refused.json()["status"]) == (200, "AuthProbeResult2", 401)
    assert refused.json()["heading"]["de"] and stranger.get(body["id"]).status_code == 401
    asked = {"origin": VIEWER, "messageId": "7"}
    unknown = message_of(stranger.get(token["id"], params=asked))
    assert (unknown["type"], unknown["profile"]) == ("AuthAccessTokenError2", "missingAspect")

    page = stranger.get(access["id"], params={"origin": VIEWER}, headers={"Accept": "text/html"}, follow_redirects=True)
    fields = {"name": ANNA[0], "password": ANNA[1], **hidden(page)}
    signed = stranger.post("/login", data=fields, headers={"Origin": str(stranger.base_url)}, follow_redirects=True)
    assert str(signed.url).startswith(access["id"]) and "window" in signed.text
    framed = stranger.get(token["id"], params=asked)
    assert f"frame-ancestors {VIEWER}" in framed.headers["content-security-policy"]
    told = message_of(framed)
    assert (told["type"], told["messageId"], told["expiresIn"]) == ("AuthAccessToken2", "7", 3600)
    bearer = {"Authorization": f"Bearer {told['accessToken']}", "Origin": VIEWER}
    wanted = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    assert (
        "authorization" in stranger.options(probe["id"], headers=wanted).headers["access-control-allow-headers"].lower()
    )
    with httpx.Client(base_url=stranger.base_url, headers=bearer, timeout=60) as viewer:
        assert viewer.get(probe["id"]).json() == {**told_of(200)}
        assert viewer.get(body["id"]).headers["content-type"] == "image/jpeg"
        # It is a token for looking at pictures, and for nothing else.
        assert viewer.get("/api/photos").status_code == 401
        assert viewer.post("/api/albums", json={"name": "x"}).status_code == 401
        stranger.post("/logout", headers={"X-Cairn": "1"})
        assert viewer.get(probe["id"]).json()["status"] == 401 and viewer.get(body["id"]).status_code == 401


def told_of(status: int) -> dict[str, Any]:
    return {"@context": "http://iiif.io/api/auth/2/context.json", "type": "AuthProbeResult2", "status": status}


@pytest.mark.parametrize(
    ("asked", "profile"),
    (({"origin": "https://evil.example", "messageId": "1"}, "invalidOrigin"), ({"origin": VIEWER}, "invalidRequest")),
)
def test_no_other_site_is_told_anything(stranger: httpx.Client, asked: dict[str, str], profile: str) -> None:
    answer = stranger.get("/iiif/token", params=asked)
    assert message_of(answer)["profile"] == profile
    assert (f"frame-ancestors {VIEWER}" in answer.headers["content-security-policy"]) == (profile == "invalidRequest")


def test_nothing_but_manifests_is_open(stranger: httpx.Client, base: str) -> None:
    for open_ in ("collection.json", "manifest.json", "1/info.json", "1/probe"):
        assert stranger.get(f"/api/iiif/{open_}").status_code == 200, open_
    for closed in ("words?q=a", "search/manifest.json?q=1", "1/full/max/0/default.jpg", "groups/1/annotations.json"):
        assert stranger.get(f"/api/iiif/{closed}").status_code == 401, closed
    assert stranger.post("/api/iiif/1/probe").status_code == 401
    elsewhere = stranger.get("/api/iiif/1/info.json", headers={"Origin": "https://other.example"})
    assert elsewhere.headers["access-control-allow-origin"] == "*"
