"""Photos, albums, groups and answers as manifests of IIIF: their shape, what they tell, and what is found in them.

They are judged by the models of the standard, where `iiif-prezi3` is installed, and by its published schema, where
CAIRN_IIIF_SCHEMA names the file `iiif_3_0.json` (of github.com/IIIF/presentation-validator).
"""

import functools
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from retrieval.catalogue.metadata_store import folded_key, import_values
from retrieval.collection.collection import Collection
from retrieval.curation.albums import make_album
from retrieval.groups.groups import group_photos
from retrieval.web.presentation import CONTEXT, MOST
from tests.conftest import Indexed
from tests.support.live import client_of, serving

SERIES = "Cups, vol. 1"
RIGHTS = "http://creativecommons.org/publicdomain/mark/1.0/"
KNOWN = {
    "title": ["A cup of coffee"],
    "caption": ["Seen from above."],
    "tag": ["cup", "table"],
    "Attribution": ["Library of Examples"],
    "Rights": [RIGHTS.replace("http:", "https:")],
    "Source": ["https://library.example/item/1"],
    "Shelf mark": ["Ms. 12"],
    "IIIF canvas": [CANVAS := "https://library.example/canvas?page=2"],
    "IIIF size": ["1000x1000"],
    "Series": [SERIES],
}


@pytest.fixture(scope="module")
def presented(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A copy of the small collection with an album of photos 2 and 1, of which much is known of photo 2."""
    root = tmp_path_factory.mktemp("presented")
    folder = Path(shutil.copytree(indexed.folder, root / "demo.cairn"))
    with Collection.open(folder) as collection:
        collection.catalogue.write(make_album, "Cups & <i>more</i>", [2, 1])
        columns = {folded_key(column): column for column in KNOWN}
        known = {2: {folded_key(column): texts for column, texts in KNOWN.items()}, 1: {"series": [SERIES]}}
        collection.catalogue.write(import_values, known, labels=columns)
        group_photos(collection)
    with serving(folder, root / "cache") as base, client_of(base) as client:
        yield client


def fetch(client: httpx.Client, address: str) -> dict[str, Any]:
    """Fetch a resource, which names itself by the address that it was fetched from."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    assert made["id"] == str(answer.request.url)
    if CONTEXT in made["@context"]:
        judge(made)
    return made


def judge(made: dict[str, Any]) -> None:
    """Look that a resource is as the Presentation API 3.0 has it."""
    if find_spec("iiif_prezi3") is not None:
        getattr(import_module("iiif_prezi3"), made["type"])(**made)
    if "CAIRN_IIIF_SCHEMA" in os.environ:
        assert published_schema().is_valid(made), made


@functools.cache
def published_schema() -> Any:
    return import_module("jsonschema_rs").validator_for(json.loads(Path(os.environ["CAIRN_IIIF_SCHEMA"]).read_text()))


def check_manifest(client: httpx.Client, made: dict[str, Any]) -> list[int]:
    """Look that a manifest has what the Presentation API 3.0 requires, and that its pictures are there."""
    assert made["type"] == "Manifest" and CONTEXT in made["@context"]
    numbers = []
    for canvas in made["items"]:
        assert canvas["type"] == "Canvas" and canvas["width"] > 0 and canvas["height"] > 0
        (page,) = canvas["items"]
        (painting,) = page["items"]
        assert (page["type"], painting["type"]) == ("AnnotationPage", "Annotation")
        assert (painting["motivation"], painting["target"]) == ("painting", canvas["id"])
        (service,) = painting["body"]["service"]
        numbers.append(int(service["id"].rpartition("/")[2]))
        assert painting["body"]["id"] == f"{service['id']}/full/max/0/default.jpg"
    first = made["items"][0]["items"][0]["items"][0]["body"]
    told = client.get(f"{first['service'][0]['id']}/info.json").json()
    assert (told["id"], told["width"], told["height"]) == (first["service"][0]["id"], first["width"], first["height"])
    assert client.get(made["thumbnail"][0]["id"]).headers["content-type"] == "image/jpeg"
    ids = [made["id"], *(one["id"] for one in made["items"])]
    assert len(set(ids)) == len(ids)
    return numbers


def test_an_album_is_a_manifest_in_its_order_that_names_where_its_words_are_found(presented: httpx.Client) -> None:
    made = fetch(presented, "/api/iiif/manifest.json?album=1&order=album")
    assert check_manifest(presented, made) == [2, 1] and made["label"] == {"none": ["Cups & <i>more</i>"]}
    (service,) = made["service"]
    assert service["type"] == "SearchService2"
    found = fetch(presented, f"{service['id']}&q=seen")
    assert [one["target"] for one in found["items"]] == [made["items"][0]["id"]]
    assert fetch(presented, f"{service['id']}&q=nowhere")["items"] == fetch(presented, service["id"])["items"] == []


def test_what_is_known_of_a_photo_is_where_the_standard_has_it(presented: httpx.Client) -> None:
    made = fetch(presented, "/api/iiif/2/manifest.json")
    assert check_manifest(presented, made) == [2] and made["label"] == {"none": ["A cup of coffee"]}
    for told in (made, made["items"][0]):
        assert told["summary"] == {"none": ["Seen from above."]} and told["rights"] == RIGHTS
        assert told["requiredStatement"]["value"] == {"none": ["Library of Examples"]}
        assert told["homepage"][0]["id"] == "https://library.example/item/1"
        pairs = {
            tuple(one["label"].get("de", one["label"].get("none"))): one["value"]["none"] for one in told["metadata"]
        }
        assert pairs == {("Schlagwörter",): ["cup", "table"], ("Shelf mark",): ["Ms. 12"], ("Series",): [SERIES]}


def test_a_list_names_all_photos_albums_and_groups(presented: httpx.Client) -> None:
    made = fetch(presented, "/api/iiif/collection.json")
    assert made["type"] == "Collection"
    whole, album, *groups = made["items"]
    photos = presented.get("/api/photos?limit=0").json()["total"]
    assert len(check_manifest(presented, fetch(presented, whole["id"]))) == photos
    assert album["label"] == {"none": ["Cups & <i>more</i>"]}
    there = presented.get("/api/groups").json()["groups"]
    assert len(groups) == len(there) > 0
    first = check_manifest(presented, fetch(presented, groups[0]["id"]))
    assert first == [one["number"] for one in there[0]["photos"]]


def test_an_answer_is_a_manifest_with_what_matches_marked(presented: httpx.Client, indexed: Indexed) -> None:
    query = presented.get("/api/photos?name=coffee").json()["photos"][0]
    box = f"{query['number']}:100,90,300,290"
    made = fetch(presented, f"/api/iiif/search/manifest.json?q={query['number']}")
    linked = fetch(presented, f"/api/iiif/search/annotations.json?q={box}&own=true")["items"]
    assert {one["target"]["source"] for one in linked} == {f"{presented.base_url}/api/iiif/{query['number']}/canvas"}
    assert {one["target"]["selector"]["value"] for one in linked} == {"xywh=100,90,201,201"}
    tei = presented.get(f"/api/iiif/search/annotations.xml?q={box}&own=true").text
    assert tei.count("<link ") == len(linked) and 'ulx="100" uly="90" lrx="301" lry="291"' in tei
    assert {one["body"][0]["source"] for one in linked} <= {canvas["id"] for canvas in made["items"]} and linked
    results = {one["number"]: one for one in presented.get(f"/api/search?q={query['number']}").json()["results"]}
    numbers = check_manifest(presented, made)
    assert len(numbers) > 1 and all(results[one]["found"] or results[one]["probability"] >= 0.8 for one in numbers)
    for number, canvas in zip(numbers, made["items"], strict=True):
        (marked,) = canvas["annotations"][0]["items"]
        address, _, box = marked["target"].partition("#xywh=")
        x, y, width, height = map(int, box.split(","))
        corners = list(zip(*results[number]["region"], strict=True))
        assert address == canvas["id"] and marked["motivation"] == "commenting"
        assert [x, y, x + width, y + height] == pytest.approx(
            [min(corners[0]) + 0.5, min(corners[1]) + 0.5, max(corners[0]) + 0.5, max(corners[1]) + 0.5], abs=1
        )


def test_a_photo_has_an_address_by_its_content(presented: httpx.Client, indexed: Indexed) -> None:
    name = presented.get("/api/photos/2").json()["name"]
    content = hashlib.sha256((indexed.photos / name).read_bytes()).hexdigest()
    for beginning in (content, content[:12]):
        answer = presented.get(f"/photo/{beginning}")
        assert answer.status_code == 303 and answer.headers["location"].endswith("/photo?number=2")
    assert presented.get(f"/photo/{'0' * 64}").status_code == 404
    assert presented.get("/photo/..%2f").status_code == 404
    assert presented.get("/photo/xyz").json()["detail"] == "No photo of this collection has this content."


def test_a_photo_has_an_address_by_what_its_source_calls_it(presented: httpx.Client) -> None:
    for asked in ({"id": CANVAS}, {"id": "ms. 12", "column": "Shelf mark"}):
        answer = presented.get("/photo/source", params=asked)
        assert answer.status_code == 303 and answer.headers["location"].endswith("/photo?number=2"), asked
    several = presented.get("/photo/source", params={"id": SERIES, "column": "Series"})
    query = several.headers["location"].removeprefix(f"{presented.base_url}".rstrip("/"))
    assert {one["number"] for one in presented.get(f"/api/photos{query.removeprefix('/')}").json()["photos"]} == {1, 2}
    for nothing in ({"id": "x"}, {"id": CANVAS, "column": "Identifier"}):
        assert presented.get("/photo/source", params=nothing).status_code == 404


def test_matches_of_a_group_are_annotations_of_canvases(presented: httpx.Client) -> None:
    group = next(
        one for one in presented.get("/api/groups").json()["groups"] if 2 in [p["number"] for p in one["photos"]]
    )
    canvas = {one["number"]: f"{presented.base_url}/api/iiif/{one['number']}/canvas" for one in group["photos"]}
    made = fetch(presented, f"/api/iiif/groups/{group['group']}/manifest.json")
    (page,) = made["items"][[one["number"] for one in group["photos"]].index(2)]["annotations"]
    address = f"/api/iiif/groups/{group['group']}/annotations.json?photo=2"
    assert page == {"id": f"{presented.base_url}{address}&own=true", "type": "AnnotationPage"}
    (theirs, *_), ours = fetch(presented, address)["items"], fetch(presented, f"{address}&own=true")["items"]
    assert theirs["target"]["source"] == CANVAS and {one["target"]["source"] for one in ours} == {canvas[2]}
    assert {one["body"][0]["source"] for one in ours} < {*canvas.values()} and len(ours) > 1
    assert {one["id"].partition("#")[0] for one in ours} == {page["id"]}
    tei = presented.get(f"/api/iiif/groups/{group['group']}/annotations.xml?own=true")
    whole = fetch(presented, f"/api/iiif/groups/{group['group']}/annotations.json")["items"]
    assert tei.headers["content-type"] == "application/tei+xml" and tei.text.count("<link ") == len(whole)
    item, number = next(
        (one, number) for one in ours for number in canvas if one["body"][0]["source"] == canvas[number]
    )
    match = presented.get(f"/api/match?q=2&photo={number}").json()
    assert (item["inliers"], item["group"]) == (match["inliers"], group["group"])
    middle = np.array([100.5, 80.5, 1])  # of a pixel, whose corner has whole numbers in annotations
    mapped, wanted = np.array(item["map"]) @ middle, np.array(match["homography"]) @ (middle - [0.5, 0.5, 0])
    assert np.allclose(mapped[:2] / mapped[2], wanted[:2] / wanted[2] + 0.5, atol=0.01)
    in_theirs = middle * [1000 / match["query"]["width"], 1000 / match["query"]["height"], 1]
    ends = [np.array(one["map"]) @ place for one, place in ((theirs, in_theirs), (ours[0], middle))]
    assert np.allclose(ends[0] / ends[0][2], ends[1] / ends[1][2])


def test_pairs_of_a_group_come_in_parts(presented: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fetch(presented, "/api/iiif/groups/1/annotations.json")
    assert len(whole["items"]) > 1 and whole["startIndex"] == 0 and "next" not in whole
    monkeypatch.setattr("retrieval.web.routes.presentation.MOST_PAIRS", 1)
    address, items = "/api/iiif/groups/1/annotations.json", []
    while address:
        part = fetch(presented, address)
        items, address = items + part["items"], part.get("next", "")
    assert items == whole["items"]
    assert 'rel="next"' in presented.get("/api/iiif/groups/1/annotations.xml").headers["link"]


def test_what_is_not_there_or_too_much_is_one_sentence(
    presented: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = ("999999/manifest.json", "groups/999999/manifest.json", "groups/999999/annotations.json")
    for address in (*missing, "manifest.json?album=999"):
        answer = presented.get(f"/api/iiif/{address}")
        assert answer.status_code == 404 and answer.json()["detail"].endswith((".", "again.")), address
    monkeypatch.setattr("retrieval.web.routes.presentation.MOST", 1)
    for address in ("manifest.json",):
        answer = presented.get(f"/api/iiif/{address}")
        assert MOST > 1 and answer.status_code == 413 and "at most" in answer.json()["detail"], address
