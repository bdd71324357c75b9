"""The REST API answers as the command line does, and its geometry agrees with the known homographies."""

import base64
import csv
import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from PIL import Image

from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.search.outlines import clip_polygon
from retrieval.web.guard import HEADERS
from retrieval.web.pool.workers import WorkerPoolOptions
from tests.conftest import Indexed, Ran
from tests.support.browser import overlap
from tests.support.live import client_of, serving, serving_copy

Cairn = Callable[..., Ran]
QUERY = "coffee_001.jpg"


@pytest.fixture(scope="module")
def numbers(client: httpx.Client) -> dict[str, int]:
    """The photos' numbers by their names."""
    return {photo["name"]: photo["number"] for photo in _get(client, "/api/photos", limit=500)["photos"]}


def _get(client: httpx.Client, path: str, **parameters: Any) -> Any:
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _post(client: httpx.Client, path: str, request: dict[str, Any], *photos: bytes, **parameters: Any) -> Any:
    files = [("photos", (f"IMG {place}.jpg", photo)) for place, photo in enumerate(photos)]
    files.append(("request", (None, json.dumps(request))))  # type: ignore[arg-type]
    answer = client.post(path, files=files, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _encoded(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def _rows(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table)))


def _comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without the times it took, and the paths, which the server does not tell."""
    kept = {key: value for key, value in answer.items() if key != "seconds"}
    return kept | {"results": [{key: entry[key] for key in entry if key != "path"} for entry in answer["results"]]}


def _mapped(matrix: Any, points: np.ndarray) -> np.ndarray:
    return cv2.perspectiveTransform(np.asarray(points, float)[None], np.asarray(matrix, float))[0]


# Photos


def test_photos_are_listed_by_name_page_by_page(client: httpx.Client, indexed: Indexed) -> None:
    names = sorted(path.name for path in indexed.photos.iterdir())
    whole = _get(client, "/api/photos", limit=500)
    assert [photo["name"] for photo in whole["photos"]] == names
    assert (whole["total"], whole["offset"]) == (len(names), 0)
    health = _get(client, "/api/health")
    assert isinstance(health.pop("ready"), bool)
    nobody = {
        "role": "write",
        "user": None,
        "session": False,
        "folders": False,
        "shelf": None,
        "server": None,
    }  # without a password, and no other collection
    assert health == {"status": "ok", "collection": "demo.cairn", "images": len(names), "originals": True, **nobody}
    pages = [_get(client, "/api/photos", offset=offset, limit=5) for offset in range(0, len(names), 5)]
    assert [photo for page in pages for photo in page["photos"]] == whole["photos"]
    some = _get(client, "/api/photos", name="OFF")
    assert (some["total"], [photo["name"] for photo in some["photos"]]) == (
        3,
        [f"coffee_00{view}.jpg" for view in (1, 2, 3)],
    )
    assert _get(client, "/api/photos", name="100%")["total"] == 0
    assert _get(client, "/api/folders")["folders"] == [{"folder": "", "photos": len(names)}]
    for photo in whole["photos"]:
        content = hashlib.sha256((indexed.photos / photo["name"]).read_bytes()).hexdigest()
        known = {"others": {}, "link": f"/photo/{content[:16]}", "film": None}
        assert _get(client, f"/api/photos/{photo['number']}") == photo | known
        assert (photo["width"], photo["height"], photo["folder"]) == (640, 480, "")
        assert photo["features"] > 50


def test_the_collection_is_what_info_tells(client: httpx.Client, indexed: Indexed, cairn: Cairn) -> None:
    facts = cairn("info", indexed.folder, "--json").json
    # Photos removed for good are named by their paths, which the server tells nobody.
    assert _get(client, "/api/collection") == {**facts, "removed_for_good": len(facts["removed_for_good"])}


@pytest.mark.parametrize(
    ("path", "side"), [("thumbnail?size=128", 128), ("thumbnail", 256), ("image?size=300", 300), ("image", 640)]
)
def test_pictures_are_small_upright_jpegs_that_browsers_keep(
    client: httpx.Client, numbers: dict[str, int], indexed: Indexed, path: str, side: int
) -> None:
    address = f"/api/photos/{numbers[QUERY]}/{path}"
    first, second = client.get(address), client.get(address)
    assert first.content == second.content
    assert first.headers["content-type"] == "image/jpeg"
    with Image.open(io.BytesIO(first.content)) as image, Image.open(indexed.photos / QUERY) as whole:
        assert (image.format, image.size, dict(image.getexif())) == ("JPEG", (side, side * 3 // 4), {})
        wanted = np.asarray(whole.resize(image.size, Image.Resampling.LANCZOS), float)
        assert np.abs(np.asarray(image, float) - wanted).mean() < 8
    again = client.get(address, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "max-age" not in first.headers["cache-control"]  # another collection may be served there tomorrow


# Search


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({}, ()),
        ({"engine": "tf-idf", "top": 3, "turns": 1}, ("--engine", "tf-idf", "--top", 3, "--turns", 1)),
        ({"engine": "raw", "turns": 1}, ("--engine", "raw", "--turns", 1)),
        ({"tf": "sqrt", "turns": 1}, ("--tf", "sqrt", "--turns", 1)),
        ({"expand": "average", "turns": 1}, ("--expand", "average", "--turns", 1)),
    ],
)
def test_a_search_by_number_is_the_query_of_the_command_line(
    client: httpx.Client, numbers: dict[str, int], indexed: Indexed, cairn: Cairn, parameters: dict, arguments: tuple
) -> None:
    box = [round(value, 2) for value in indexed.boxes["coffee_001"]]
    corners = ",".join(map(str, box))
    found = _get(client, "/api/search", q=f"{numbers[QUERY]}:{corners}", **parameters)
    told = cairn("query", indexed.folder, QUERY, "--box", *box, *arguments, "--json").json
    assert _comparable(found) == _comparable(told)
    assert found["seconds"].keys() == told["seconds"].keys()
    assert [entry["number"] for entry in found["results"]] == [numbers[entry["name"]] for entry in found["results"]]


@pytest.mark.parametrize("how", ["any", "all"])
def test_several_photos_make_one_query(
    client: httpx.Client, numbers: dict[str, int], indexed: Indexed, cairn: Cairn, how: str
) -> None:
    names = (QUERY, "page_001.jpg")
    found = _get(client, "/api/search", q=[numbers[name] for name in names], match=how, turns=1)
    told = cairn("query", indexed.folder, *names, f"--{how}", "--turns", 1, "--json").json
    assert _comparable(found) == _comparable(told)
    # Each result says which photo it matches, and its homography is from that one.
    uploads = [(indexed.photos / name).read_bytes() for name in names]
    sent = _post(client, "/api/search", {"queries": [{"upload": 0}, {"upload": 1}], "match": how, "turns": 1}, *uploads)
    assert sent["query"] == ["IMG 0.jpg", "IMG 1.jpg"]
    assert sent["results"] == found["results"]
    for entry in found["results"]:
        query, view = names[entry["query_index"]].removesuffix(".jpg"), entry["name"].removesuffix(".jpg")
        if entry["homography"] is not None and query[:4] == view[:4]:
            x0, y0, x1, y1 = indexed.boxes[query]
            points = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
            np.testing.assert_allclose(
                _mapped(entry["homography"], points), _mapped(indexed.homography(query, view), points), atol=12
            )


def test_a_region_is_where_the_box_lies(client: httpx.Client, numbers: dict[str, int], indexed: Indexed) -> None:
    x0, y0, x1, y1 = indexed.boxes["coffee_001"]
    found = _get(client, "/api/search", q=f"{numbers[QUERY]}:{x1},{y0},{x0},{y1}", turns=1)
    assert found["box"] == found["boxes"][0] == pytest.approx([x0, y0, x1, y1], abs=1e-3)
    regions = {entry["name"]: entry["region"] for entry in found["results"]}
    corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    for view in ("coffee_001", "coffee_002", "coffee_003"):
        wanted = _mapped(indexed.homography("coffee_001", view), corners)
        assert overlap(regions[f"{view}.jpg"], clip_polygon(wanted, 640, 480)) > 0.9, view
    for entry in found["results"]:
        if entry["homography"] is None:
            assert entry["region"] is None


@pytest.mark.slow
def test_regions_stay_in_their_photos(client: httpx.Client, numbers: dict[str, int]) -> None:
    shown = []
    for name in ("coffee_001.jpg", "page_002.jpg"):
        for entry in _get(client, "/api/search", q=numbers[name], top=500)["results"]:
            matched = _get(
                client, "/api/match", q=numbers[name], photo=entry["number"], turn=entry["turn"], full=entry["full"]
            )
            assert matched["region"] == entry["region"]
            if entry["region"] is None:
                continue
            corners = np.array(entry["region"])
            assert 3 <= len(corners) <= 8
            assert corners.min() >= -0.5 and (corners.max(axis=0) <= [639.5, 479.5]).all(), entry["name"]
            shown.append(entry["name"])
    assert len(shown) >= 6


def test_filters_restrict_what_is_ranked(client: httpx.Client, numbers: dict[str, int]) -> None:
    ask = {"q": numbers[QUERY], "turns": 1, "top": 500}
    everything = {entry["name"]: entry for entry in _get(client, "/api/search", **ask)["results"]}
    some = _get(client, "/api/search", **ask, name="_003")["results"]
    assert [entry["rank"] for entry in some] == list(range(1, len(some) + 1))
    assert {entry["name"] for entry in some} == {name for name in everything if "_003" in name}
    for entry in some:
        assert {**entry, "rank": 0} == {**everything[entry["name"]], "rank": 0}
    assert _get(client, "/api/search", **ask, folder="nowhere")["results"] == []
    assert _get(client, "/api/search", **ask, name="", folder="")["results"] == list(everything.values())


def test_an_upload_may_be_turned_and_boxed(client: httpx.Client, indexed: Indexed) -> None:
    with Image.open(indexed.photos / QUERY) as photo:
        turned = _encoded(photo.transpose(Image.Transpose.ROTATE_90))
    x0, y0, x1, y1 = indexed.boxes["coffee_001"]
    # A quarter turn against the clock takes (x, y) of a 640 pixels wide photo to (y, 639 - x).
    box = [y0, 639 - x1, y1, 639 - x0]
    found = _post(client, "/api/search", {"queries": [{"upload": 0, "box": box}]}, turned)
    assert found["query"] == "IMG 0.jpg"
    first = found["results"][0]
    assert first["name"] == QUERY
    wanted = np.array([[x1, y0], [x1, y1], [x0, y1], [x0, y0]])
    np.testing.assert_allclose(first["region"], wanted, atol=6)


def test_a_phone_photo_is_turned_by_its_exif(client: httpx.Client, indexed: Indexed) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter clockwise
    with Image.open(indexed.photos / QUERY) as photo:
        stored = photo.transpose(Image.Transpose.ROTATE_90)
    lying = _encoded(stored, "JPEG", quality=95, exif=exif)
    found = _post(client, "/api/search", {"queries": [{"upload": 0}], "turns": 1}, lying)
    assert found["results"][0]["name"] == QUERY
    np.testing.assert_allclose(found["results"][0]["homography"], np.eye(3), atol=0.5)
    shown = client.post("/api/preview", files={"photo": ("a.jpg", lying)})
    assert (shown.headers["x-photo-width"], shown.headers["x-photo-height"]) == ("640", "480")
    with Image.open(io.BytesIO(shown.content)) as image:
        assert (image.format, image.size, dict(image.getexif())) == ("JPEG", (640, 480), {})


# Matches


@pytest.mark.parametrize("uploaded", [False, True])
def test_the_points_and_ellipses_of_a_match_agree_with_the_known_homography(
    client: httpx.Client, numbers: dict[str, int], indexed: Indexed, uploaded: bool
) -> None:
    other = numbers["coffee_002.jpg"]
    box = list(indexed.boxes["coffee_001"])
    if uploaded:
        content = (indexed.photos / QUERY).read_bytes()
        found = _post(client, "/api/match", {"queries": [{"upload": 0, "box": box}], "photo": other}, content)
    else:
        found = _get(client, "/api/match", q=f"{numbers[QUERY]}:{','.join(map(str, box))}", photo=other)
    assert found["query"]["name"] == ("IMG 0.jpg" if uploaded else QUERY)
    assert (found["query"]["width"], found["query"]["height"]) == (640, 480)
    assert found["photo"]["name"] == "coffee_002.jpg"
    assert len(found["matches"]) == found["inliers"] > 20
    truth = indexed.homography("coffee_001", "coffee_002")
    here, there = (np.array([one[side] for one in found["matches"]]) for side in ("query", "photo"))
    x0, y0, x1, y1 = box
    assert (here >= [x0, y0]).all() and (here <= [x1, y1]).all()
    errors = np.linalg.norm(_mapped(truth, here) - there, axis=1)
    # Verification lets pass what is within 16 pixels of its own affine map, not of the true one.
    assert np.median(errors) < 2 and np.count_nonzero(errors >= 16) <= 1
    assert np.linalg.norm(_mapped(found["homography"], here) - _mapped(truth, here), axis=1).max() < 6
    # The map of the surroundings takes one ellipse to the other: J Σ Jᵀ, in size and in shape.
    differences = []
    for one, point in zip(found["matches"], here, strict=True):
        steps = _mapped(truth, point + np.array([[0.5, 0], [-0.5, 0], [0, 0.5], [0, -0.5]]))
        jacobian = np.stack([steps[0] - steps[1], steps[2] - steps[3]], axis=1)
        mapped = jacobian @ _covariance(one["query_ellipse"]) @ jacobian.T
        wanted = _covariance(one["photo_ellipse"])
        differences.append(np.linalg.norm(mapped - wanted) / np.linalg.norm(wanted))
    assert np.median(differences) < 0.35


def _covariance(ellipse: list[float]) -> np.ndarray:
    a, b, c = ellipse
    return np.linalg.inv([[a, b], [b, c]])


def test_a_match_is_what_the_search_verified(client: httpx.Client, numbers: dict[str, int]) -> None:
    answers = [_get(client, "/api/search", q=numbers[QUERY], turns=4, every_turn=every) for every in (False, True)]
    assert [answer["turned"] for answer in answers] == [False, True]
    shown = [(4 if answer["turned"] else 1, entry) for answer in answers for entry in answer["results"][:6]]
    for turns, entry in shown:
        found = _get(
            client,
            "/api/match",
            q=numbers[QUERY],
            photo=entry["number"],
            turns=turns,
            turn=entry["turn"],
            full=entry["full"],
        )
        for key in ("score", "inliers", "probability", "found", "homography", "turn"):
            assert found[key] == entry[key], (entry["name"], key)


def test_a_turned_match_has_its_points_on_the_turned_photo(
    client: httpx.Client, indexed: Indexed, numbers: dict
) -> None:
    with Image.open(indexed.photos / QUERY) as photo:
        turned = _encoded(photo.transpose(Image.Transpose.ROTATE_90))
    found = _post(client, "/api/match", {"queries": [{"upload": 0}], "photo": numbers[QUERY]}, turned)
    assert found["turn"] == pytest.approx(1.5 * np.pi, abs=1e-5)
    here, there = (np.array([one[side] for one in found["matches"]]) for side in ("query", "photo"))
    errors = np.linalg.norm(np.stack([639 - here[:, 1], here[:, 0]], axis=1) - there, axis=1)
    assert np.median(errors) < 2
    differences = []
    for one in found["matches"]:
        a, b, c = one["query_ellipse"]  # a quarter turn swaps the axes
        wanted = _covariance(one["photo_ellipse"])
        differences.append(np.linalg.norm(_covariance([c, -b, a]) - wanted) / np.linalg.norm(wanted))
    assert np.median(differences) < 0.35


def test_a_match_can_be_kept_as_a_table_and_as_a_picture(client: httpx.Client, numbers: dict[str, int]) -> None:
    asked = {"q": numbers[QUERY], "photo": numbers["coffee_002.jpg"], "turns": 1}
    matches = _get(client, "/api/match", **asked)["matches"]
    table = client.get("/api/match", params={**asked, "format": "csv"})
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert table.headers["content-disposition"] == 'attachment; filename="match.csv"'
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert list(rows[0])[:4] == ["query_x", "query_y", "photo_x", "photo_y"]
    assert [[float(value) for value in row.values()] for row in rows] == [
        [*one["query"], *one["photo"], *one["query_ellipse"], *one["photo_ellipse"]] for one in matches
    ]
    picture = client.get("/api/match", params={**asked, "format": "jpg"})
    assert picture.headers["content-disposition"] == 'attachment; filename="match.jpg"'
    with Image.open(io.BytesIO(picture.content)) as image:
        assert image.format == "JPEG" and image.width > 1200


def test_impressions_come_with_four_pictures_of_one_size(client: httpx.Client, numbers: dict[str, int]) -> None:
    asked = {"q": f"{numbers['page_001.jpg']}:40,40,340,240", "photo": numbers["page_003.jpg"]}
    found = _get(client, "/api/impressions", **asked)
    assert found["box"] == [40, 40, 340, 240] and found["size"] == [300, 200]
    assert list(found["pictures"]) == ["reference", "photo", "overlay", "residual"]
    for picture in found["pictures"].values():
        kind, _, content = picture.partition(",")
        assert kind == "data:image/jpeg;base64"
        assert Image.open(io.BytesIO(base64.b64decode(content))).size == (300, 200)
    refused = client.get("/api/impressions", params=asked | {"photo": numbers["cat_001.jpg"]})
    assert refused.status_code == 400 and "cannot be overlaid" in refused.json()["detail"]


@pytest.mark.slow
def test_the_print_clock_follows_what_is_decided(client: httpx.Client, numbers: dict[str, int]) -> None:
    one, other = (numbers[f"page_00{place}.jpg"] for place in (1, 3))
    path, asked = "/api/impressions/clock", {"q": str(one), "photo": [one, other]}
    found = _get(client, path, **asked)
    assert {photo["number"] for photo in found["photos"]} == {one, other} and found["earlier"][0][1] >= 0.5
    assert found["decisions"] == found["kept"] and len(found["pictures"]) == 2
    first, second = (photo["number"] for photo in found["photos"])
    decided = found["kept"] | {"before": [[second, first]], "regions": [[0, 0, 40, 40]]}
    tried = _get(client, path, **asked, decisions=json.dumps(decided))
    assert tried["photos"][0]["number"] == second and (tried["decisions"], tried["kept"]) == (decided, found["kept"])
    table = client.get(path, params=asked | {"format": "csv"}).content.decode("utf-8-sig")
    assert [row["photo"] for row in csv.DictReader(io.StringIO(table))] == [photo["name"] for photo in found["photos"]]
    contradicted = {"before": [[one, other], [other, one]]}
    for wrong, status in (({"leave_out": [one]}, 400), (contradicted, 400), ({"clock": "x"}, 422)):
        assert client.get(path, params=asked | {"decisions": json.dumps(wrong)}).status_code == status


# What is not there


def test_what_is_not_there_is_a_sentence(client: httpx.Client, numbers: dict[str, int]) -> None:
    for path in (
        *(f"/api/photos/987654{part}" for part in ("", "/thumbnail", "/image", "/film", "/albums", "/objects")),
        *(f"/api/iiif/987654/{part}" for part in ("info.json", "probe", "manifest.json", "full/max/0/default.jpg")),
        "/api/search?q=987654",
        "/api/iiif/search/manifest.json?q=987654",
        "/api/rejections?photo=987654",
        *(f"/api/{what}?q=0&photo=987654" for what in ("match", "impressions", "impressions/clock")),
        *(f"/api/{what}?q=987654&photo=0" for what in ("match", "impressions", "impressions/clock")),
    ):
        answer = client.get(path)
        expected = {"detail": "There is no photo 987654 in this collection."}
        assert (answer.status_code, answer.json()) == (404, expected), path
    for number in ("x", "-1", "9" * 20):
        answer = client.get(f"/api/photos/{number}")
        assert (answer.status_code, answer.json()) == (
            404,
            {"detail": f"There is no photo {number} in this collection."},
        )
    answer = client.get("/api/nothing")
    assert (answer.status_code, answer.json()) == (404, {"detail": "There is nothing at this address."})
    page = client.get("/nothing<script>", headers={"Accept": "text/html"})
    assert page.status_code == 404 and page.headers["content-type"].startswith("text/html")
    assert "There is nothing at this address." in page.text and "<script" not in page.text
    german = client.get("/nothing<script>", headers={"Accept": "text/html", "accept-language": "de"})
    assert 'lang="de"' in german.text and "Unter dieser Adresse gibt es nichts." in german.text
    assert "Zurück zu den Fotos" in german.text
    box = client.get("/api/search", params={"q": f"{numbers[QUERY]}:2000,2000,3000,3000"})
    assert box.status_code == 400 and "outside the photo" in box.json()["detail"]
    both = client.get("/api/search", params={"q": numbers[QUERY], "engine": "raw", "expand": "average"})
    assert both.status_code == 400 and "engine" in both.json()["detail"]
    none = client.get("/api/search", params={"q": numbers[QUERY], "similarity": 1})
    assert none.status_code == 400 and "--similarity" in none.json()["detail"]


def test_the_pages_and_their_files_are_served(client: httpx.Client) -> None:
    for path in ("/", "/photo?number=1", "/search?q=1", "/match?q=1&photo=2", "/groups", "/status"):
        page = client.get(path)
        assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    for path, kind in (("css/cairn.css", "text/css"), ("js/api.js", "text/javascript"), ("cairn.svg", "image/svg+xml")):
        file = client.get(f"/static/{path}")
        assert file.status_code == 200 and file.headers["content-type"].startswith(kind)
        again = client.get(f"/static/{path}", headers={"If-None-Match": file.headers["etag"]})
        assert again.status_code == 304 and again.headers["cache-control"] == "no-cache"


def test_a_browser_keeps_files_for_as_long_as_they_are_the_same(client: httpx.Client) -> None:
    found = re.search(r'href="(/static/[0-9a-f]{12}/css/cairn\.css)"', client.get("/").text)
    assert found
    file = client.get(found[1])
    assert file.content == client.get("/static/css/cairn.css").content
    assert "immutable" in file.headers["cache-control"]
    # A page that is open since before an update gets what there is now, and asks again.
    other = client.get("/static/0123456789ab/css/cairn.css")
    assert other.content == file.content and other.headers["cache-control"] == "no-cache"
    for wrong in (
        "0123456789ab/0123456789ab/css/cairn.css",
        "0123456789ab/nothing.css",
        "0123456789ab/",
        "0123456789ab",
    ):
        assert client.get(f"/static/{wrong}").status_code == 404
    assert client.get("/static/0123456789ab/%2e%2e/app.py").status_code == 404


def test_every_answer_has_the_security_headers(client: httpx.Client) -> None:
    for method, path in (
        ("GET", "/"),
        ("GET", "/api/health"),
        ("GET", "/api/photos/0/thumbnail"),
        ("GET", "/static/css/cairn.css"),
        ("GET", "/nowhere"),
        ("GET", "/api/photos/x"),
        ("POST", "/api/search"),
        ("DELETE", "/api/photos"),
        ("OPTIONS", "/api/search"),
    ):
        answer = client.request(method, path)
        assert (
            HEADERS.items() <= {**dict(answer.headers), **{name: answer.headers.get(name) for name in HEADERS}}.items()
        )
        if answer.status_code >= 400:
            assert list(answer.json()) == ["detail"]
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"] and "unsafe" not in str(HEADERS)


# Groups


def test_groups_are_what_was_found(
    client: httpx.Client, indexed: Indexed, tmp_path: Path, cairn: Cairn, numbers: dict[str, int]
) -> None:
    for path in ("/api/groups", "/api/groups.csv"):
        none = client.get(path)
        assert none.status_code == 404 and "run cairn group" in none.json()["detail"]
    folder, table = tmp_path / "copy.cairn", tmp_path / "groups.csv"
    shutil.copytree(indexed.folder, folder)
    told = cairn("group", folder, "--workers", 1, "--out", table, "--json").json
    one = WorkerPoolOptions(workers=1)
    with (
        serving(folder, tmp_path / "cache", search=one, pictures=one) as address,
        httpx.Client(base_url=address, timeout=60) as copied,
    ):
        page = _get(copied, "/api/groups")
        assert (page["total"], page["inliers"], page["out_of_date"]) == (told["groups"], 20, False)
        assert sum(len(group["photos"]) for group in page["groups"]) == told["grouped"]
        assert sum(group["links"] for group in page["groups"]) == told["links"]
        found = [{photo["name"] for photo in group["photos"]} for group in page["groups"]]
        assert any({f"coffee_00{view}.jpg" for view in (1, 2, 3)} <= group for group in found)
        assert [_get(copied, "/api/groups", offset=k, limit=1)["groups"][0] for k in range(page["total"])] == page[
            "groups"
        ]
        columns = ("group", "name", "duplicate_of", "kind", "similar_to")
        rows = [{name: row[name] for name in columns} for row in _rows(table.read_text())]
        kinds = {photo["name"]: photo["kind"] or "" for group in page["groups"] for photo in group["photos"]}
        assert kinds == {row["name"]: row["kind"] for row in rows}
        assert _rows(copied.get("/api/groups.csv").text) == rows
        with Collection.open(folder) as collection:
            collection.catalogue.write(make_tombstones, [numbers["coffee_001.jpg"]])
        changed = _get(copied, "/api/groups")
        assert changed["out_of_date"] and "coffee_001.jpg" not in str(changed)


# A collection that changes


@pytest.mark.slow
def test_what_is_indexed_meanwhile_is_found(indexed: Indexed, tmp_path: Path) -> None:
    from retrieval.indexing.adding import index_photos

    photos = tmp_path / "more"
    photos.mkdir()
    with Image.open(indexed.photos / QUERY) as photo:
        photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(photos / "mirrored.png")
        content = _encoded(photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT))
    with serving_copy(indexed.folder, tmp_path) as (address, folder), client_of(address) as client:

        def first() -> tuple[str, int]:
            best = _post(client, "/api/search", {"queries": [{"upload": 0}], "turns": 1}, content)["results"][0]
            return best["name"], best["inliers"]

        assert first()[0] != "mirrored.png"
        with Collection.open(folder) as collection:
            index_photos(collection, [photos])
            number = next(row.number for row in collection.catalogue.read(all_indexed) if row.name == "mirrored.png")
            assert first()[0] == "mirrored.png"
            assert client.get(f"/api/photos/{number}/image").status_code == 200
            (photos / "mirrored.png").unlink()
            for path in (f"/api/photos/{number}/image", f"/api/photos/{number}/thumbnail"):
                gone = client.get(path)
                assert gone.status_code == 410 and "mirrored.png" in gone.json()["detail"], path
                assert "Connect its drive, or say where its folder is now." in gone.json()["detail"], path
            stored = client.get(f"/api/search?q={number}")  # what is stored of it will do
            assert stored.status_code == 200 and stored.json()["results"][0]["name"] == "mirrored.png"
            collection.catalogue.write(make_tombstones, [number])
        assert first()[0] != "mirrored.png"
        assert client.get(f"/api/photos/{number}").status_code == 404
