"""Whatever is sent to the server, it answers 4xx with a sentence, lives on, and writes nothing but thumbnails."""

import http.client
import io
import json
import shutil
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from retrieval.web.problems import ProblemError
from retrieval.web.uploads import Receiver, UploadOptions
from tests.conftest import Indexed
from tests.support.hostile import UNREADABLE, hostile_files, png
from tests.support.live import serving
from tests.support.paths import ROOT

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'


def _tree(folder: Path) -> set[str]:
    # Readers of an SQLite database leave files of these names beside it.
    return {str(path) for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm"))}


@pytest.fixture(scope="module", autouse=True)
def nothing_is_written(indexed: Indexed, served: str, cache: Path) -> Iterator[None]:
    """After all these tests there is nothing new but thumbnails."""
    folders = (indexed.folder, indexed.photos, ROOT / "retrieval" / "web" / "static")
    before = [_tree(folder) for folder in folders]
    yield
    assert [_tree(folder) for folder in folders] == before
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".jpg"]
    (scratch,) = (cache.parent / "scratch").iterdir()
    assert list(scratch.iterdir()) == []


def _refused(answer: httpx.Response) -> str:
    """The one sentence of a refusal."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    assert list(answer.json()) == ["detail"], answer.text
    sentence = answer.json()["detail"]
    assert isinstance(sentence, str) and sentence.endswith(".") and "\n" not in sentence and len(sentence) < 500
    assert "Traceback" not in sentence and "Error" not in sentence
    return sentence


def _alive(client: httpx.Client) -> None:
    assert client.get("/api/health").json()["status"] == "ok"


def _search(client: httpx.Client, *photos: tuple[str, bytes], **request: Any) -> httpx.Response:
    queries = [{"upload": place} for place in range(len(photos))]
    files: list[Any] = [("request", (None, json.dumps({"queries": queries, "turns": 1, **request})))]
    return client.post("/api/search", files=files + [("photos", photo) for photo in photos])


# Uploads


def test_files_that_are_no_photos_are_refused_with_the_reason(client: httpx.Client) -> None:
    files = hostile_files()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("photo.jpg", files["one-pixel.png"])
    bad = {name: (files[name], reason) for name, reason in UNREADABLE.items()}
    bad["renamed.jpg"] = (archive.getvalue(), "not a photo")
    bad["script.svg"] = (SVG, "not a photo")
    bad["wide.png"] = (png(200_000, 600), "more than the limit")
    for name, (content, reason) in bad.items():
        for answer in (
            client.post("/api/preview", files={"photo": (name, content)}),
            _search(client, (name, content)),
        ):
            said = _refused(answer)
            # What decodes WebP asks for the memory of all pixels before it tells how many there are.
            short = name == "huge.webp" and "decoder object" in said
            assert short or reason in said, name
            assert name in said
            assert answer.status_code == (413 if "limit" in reason and not short else 415), name
    _alive(client)


def test_odd_files_that_are_photos_are_shown(client: httpx.Client) -> None:
    for name, content in hostile_files().items():
        if name not in UNREADABLE:
            answer = client.post("/api/preview", files={"photo": (name, content)})
            assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg"), name


@pytest.mark.parametrize(
    "name",
    [
        "../../../../tmp/pwned.jpg",
        "<b>%s\0",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("..\\..\\pwned.jpg", "/etc/passwd", "a\r\nX-Bad: 1", "", "x" * 4000)
        ),
    ],
)
def test_an_upload_may_call_itself_anything(client: httpx.Client, name: str) -> None:
    answer = _search(client, (name, b"no photo"))
    sentence = _refused(answer)
    assert "x-bad" not in answer.headers and "/" not in sentence.split(" cannot be used")[0]
    good = _search(client, (name, hostile_files()["one-pixel.png"]))
    assert good.status_code == 200 and "/" not in good.json()["query"]


def test_uploads_are_bounded(client: httpx.Client, served: str) -> None:
    answer = client.post("/api/preview", files={"photo": ("big.jpg", bytes(100_000_000))})
    assert (answer.status_code, "50 MB" in _refused(answer)) == (413, True)
    many = _search(client, *[(f"{place}.jpg", b"x") for place in range(9)], queries=[{"photo": 0}])
    assert (many.status_code, "8 photos" in _refused(many)) == (413, True)
    long = client.post("/api/search", files={"request": (None, "x" * 100_000)})
    assert (long.status_code, _refused(long)) == (413, "A field of the form is too long.")
    # What a request says of its own length is not believed.
    host = urlsplit(served).netloc
    connection = http.client.HTTPConnection(host, timeout=60)

    def chunks() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="photo"; filename="a.jpg"\r\n\r\n'
        for _ in range(60):
            yield bytes(1_000_000)
        yield b"\r\n--x--\r\n"

    kind = {"X-Cairn": "1", "Content-Type": "multipart/form-data; boundary=x"}
    connection.request("POST", "/api/preview", chunks(), kind, encode_chunked=True)
    assert connection.getresponse().status == 413
    _alive(client)


FORM = '--x\r\nContent-Disposition: form-data; name="{}"; filename="a.jpg"\r\n\r\n{}\r\n--x--\r\n'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("", b""),
        ("application/json", b'{"queries": [{"photo": 1}]}'),
        ("multipart/form-data", b""),
        ("multipart/form-data; boundary=", b"--\r\n"),
        ("multipart/form-data; boundary=" + "x" * 5000, b""),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"nothing of the kind"),
        ("multipart/form-data; boundary=x", FORM.format("photo", "abc").encode()[:-9]),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"A" * 20_000 + b": 1\r\n\r\n\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b"--x\r\nNo-Disposition: 1\r\n\r\nabc\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b"".join(FORM.format(i, i).encode()[:-7] + b"\r\n" for i in range(99))),
        ("multipart/form-data; boundary=x", FORM.format("request", "{}").encode()),
        ("multipart/form-data; boundary=x", FORM.format("request", "\xff\0").encode("latin-1")),
        ("multipart/form-data; boundary=\xff\xfe", b"\xff"),
    ],
)
def test_a_damaged_form_is_refused(client: httpx.Client, kind: str, body: bytes) -> None:
    for path in ("/api/search", "/api/match", "/api/preview"):
        _refused(client.post(path, content=body, headers={"Content-Type": kind.encode("latin-1")}))


REQUESTS: list[str] = [
    "",
    "[]",
    "null",
    "{",
    "NaN",
    '{"queries": []}',
    '{"queries": [{}]}',
    '{"queries": [{"photo": 1, "upload": 0}]}',
    '{"queries": [{"upload": 0}]}',
    '{"queries": [{"upload": 1e999}]}',
    '{"queries": [{"upload": -1}]}',
    '{"queries": [{"photo": -1}]}',
    '{"queries": [{"photo": 1.5}]}',
    '{"queries": [{"photo": 99999999999999999999999}]}',
    '{"queries": [{"photo": "../../etc/passwd"}]}',
    '{"queries": [{"photo": 0, "box": [0, 0, 1]}]}',
    '{"queries": [{"photo": 0, "box": [0, 0, NaN, 1]}]}',
    '{"queries": [{"photo": 0, "box": [0, 0, Infinity, 1]}]}',
    '{"queries": [{"photo": 0, "box": [0, 0, 1e999, 1]}]}',
    '{"queries": [{"photo": 0, "box": [9e307, 9e307, 9.1e307, 9.1e307]}]}',
    '{"queries": [{"photo": 0, "box": {"__class__": 1}}]}',
    '{"queries": [{"photo": 0}], "top": 0}',
    '{"queries": [{"photo": 0}], "top": 1e9}',
    '{"queries": [{"photo": 0}], "turns": 1000000}',
    '{"queries": [{"photo": 0}], "engine": "\\u0000"}',
    '{"queries": [{"photo": 0}], "expand": "magic"}',
    '{"queries": [{"photo": 0}], "name": "\\ud800"}',
    '{"queries": [{"photo": 0}], "folder": ' + json.dumps("x" * 5000) + "}",
    json.dumps({"queries": [{"photo": 0}] * 9}),
    "[" * 50_000,
]


@pytest.mark.parametrize("text", REQUESTS, ids=range(len(REQUESTS)))
def test_a_wrong_request_is_refused_in_a_sentence(client: httpx.Client, text: str) -> None:
    _refused(client.post("/api/search", files={"request": (None, text)}))


def test_photos_of_requests_that_are_refused_are_not_kept(client: httpx.Client) -> None:
    """`nothing_is_written` looks whether they are."""
    _refused(_search(client, ("a.jpg", b"x"), top=-1))
    _refused(client.post("/api/preview", files=[("photo", ("a.jpg", b"x")), ("photo", ("b.jpg", b"x"))]))


# Parameters and paths

ODD = [
    "",
    "-1",
    "1.5",
    "1e3",
    "NaN",
    "inf",
    "99999999999999999999",
    "9" * 400,
    "0x10",
    "١",
    "null",
    "../1",
    "%00",
    "\0",
    "1;2",
]


@pytest.mark.parametrize("value", ODD)
def test_a_number_is_a_number(client: httpx.Client, value: str) -> None:
    asked = [
        {"q": value},
        {"q": "0", "top": value or "x"},
        {"q": "0", "turns": value or "x"},
        {"q": f"0:0,0,1{value},"},
    ]
    if value not in ("-1", "1.5", "1e3", "9" * 20):  # numbers may be corners, however far out
        asked += [{"q": f"0:0,0,{value},9"}, {"q": f"0:{value},0,9,9"}]
    for parameters in asked:
        _refused(client.get("/api/search", params=parameters))
    _refused(client.get("/api/match", params={"q": "0", "photo": value}))
    if value:
        for name in ("offset", "limit"):
            _refused(client.get("/api/photos", params={name: value}))
        for name in ("thumbnail", "image"):
            _refused(client.get(f"/api/photos/0/{name}", params={"size": value}))


def _raw(served: str, target: bytes, *headers: bytes, method: bytes = b"GET") -> tuple[int, bytes]:
    """Send a request line as it is: clients tidy up addresses."""
    where = urlsplit(served)
    assert where.hostname and where.port
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: 127.0.0.1", b"Connection: close", *headers, b"", b""]
    with socket.create_connection((where.hostname, where.port), timeout=60) as connection:
        connection.sendall(b"\r\n".join(lines))
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return int(answer.split(b" ", 2)[1]), answer


WAYS_UP = [
    b"..",
    b"%2e%2e",
    b"..%2f",
    b"%2e%2e%2f",
    b"..%5c",
    b"%252e%252e",
    b"....//",
    b".%00.",
    b"%c0%ae%c0%ae",
    b"~root",
]


@pytest.mark.parametrize("way", WAYS_UP)
def test_no_path_leads_out(served: str, client: httpx.Client, way: bytes) -> None:
    up = b"/".join([way] * 12)
    for place in (b"/static/", b"/static/js/", b"/api/photos/", b"/api/photos/0/", b"/", b"/api/"):
        for goal in (b"/etc/passwd", b"", b"/app.py", b"/../app.py"):
            status, answer = _raw(served, place + up + goal)
            assert 400 <= status < 500, (place, goal, answer[:300])
            assert b"root:" not in answer and b"create_app" not in answer
    for number in (way, way + b"/0", b"0" + way):
        for end in (b"", b"/thumbnail", b"/image"):
            status, _ = _raw(served, b"/api/photos/" + number + end)
            assert 400 <= status < 500
    _alive(client)


ODD_PATHS = [
    *(
        b"/static//etc/passwd",
        b"/static/%00",
        b"/static/js/api.js%00.css",
        b"/static/js/%ff",
        b"/%00",
        b"//evil.example/",
    ),
    *(b"/static", b"/static/", b"/static/js", b"/static/" + b"a" * 5000, b"/" + b"a/" * 3000, b"/api/photos/\xff\xfe"),
]


@pytest.mark.parametrize("target", ODD_PATHS)
def test_an_odd_path_is_not_found(served: str, target: bytes) -> None:
    status, answer = _raw(served, target)
    assert 400 <= status < 500, answer[:300]
    assert b"Traceback" not in answer


@pytest.mark.parametrize("page", ["/", "/photo", "/search", "/match", "/groups", "/status"])
def test_what_is_asked_has_no_part_in_which_page_is_shown(client: httpx.Client, tmp_path: Path, page: str) -> None:
    (tmp_path / "secret.html").write_text("secret")
    plain = client.get(page)
    assert plain.status_code == 200
    for name in ("name", "_name", "page", "path", "file", "folder"):
        for value in (str(tmp_path / "secret"), "../app", "c"):
            answer = client.get(page, params={name: value})
            assert answer.status_code == 200 and answer.content == plain.content


@pytest.mark.slow
def test_a_filter_is_no_pattern_and_no_sql(client: httpx.Client) -> None:
    for text in (
        "%",
        "_" * 40,
        "' OR 1=1 --",
        '"',
        "\\",
        "\0",
        "\ud800".encode("utf-16", "surrogatepass").hex(),
        "x" * 1024,
    ):
        for name in ("name", "folder"):
            answer = client.get("/api/photos", params={name: text})
            assert (answer.status_code, answer.json()["total"]) == (200, 0), (name, text)
            answer = client.get("/api/search", params={"q": 0, "turns": 1, name: text})
            assert (answer.status_code, answer.json()["results"]) == (200, []), (name, text)
    _refused(client.get("/api/photos", params={"name": "x" * 1025}))


# Other names of this machine


def test_a_name_that_is_made_to_lead_here_is_refused(indexed: Indexed, tmp_path: Path) -> None:
    from retrieval.web.access.options import LOOPBACK, AccessOptions

    with serving(indexed.folder, tmp_path / "cache", access=AccessOptions(hosts=LOOPBACK)) as address:
        port = urlsplit(address).port
        for host in ("localhost", "127.0.0.1", "[::1]", f"LocalHost:{port}"):
            assert httpx.get(f"{address}/api/health", headers={"Host": host}).status_code == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.", "", "[", "::1"):
            answer = httpx.get(f"{address}/api/health", headers={"Host": host})
            if answer.headers.get("content-type") == "application/json":
                assert "--allowed-host" in _refused(answer)
            assert answer.status_code == 400


def test_an_upload_that_never_ends_is_given_up(tmp_path: Path) -> None:
    import asyncio

    from starlette.requests import Request

    async def slow() -> dict[str, Any]:
        await asyncio.sleep(0.2)
        return {"type": "http.request", "body": b"--x\r\n", "more_body": True}

    headers = [(b"content-type", b"multipart/form-data; boundary=x")]

    async def upload() -> None:
        request = Request({"type": "http", "method": "POST", "headers": headers}, slow)
        async with Receiver(tmp_path, UploadOptions(seconds=0.5)).receive(request):
            raise AssertionError("it ended")

    with pytest.raises(ProblemError, match="took too long") as error:
        asyncio.run(upload())
    assert error.value.status == 504
    assert list(tmp_path.iterdir()) == []


def test_more_uploads_at_a_time_than_the_disk_may_hold_are_refused(tmp_path: Path) -> None:
    import asyncio

    from starlette.requests import Request

    headers = [(b"content-type", b"multipart/form-data; boundary=x")]
    body = FORM.format("photo", "abc").encode()

    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def upload() -> None:
        receiver = Receiver(tmp_path, UploadOptions(requests=1))
        for _ in range(2):
            async with receiver.receive(Request({"type": "http", "method": "POST", "headers": headers}, whole)) as form:
                assert [path.read_bytes() for path in form.photos] == [b"abc"]
                assert form.photos[0].parent == tmp_path and form.names == ["a.jpg"]
                with pytest.raises(ProblemError, match="busy"):
                    async with receiver.receive(Request({"type": "http", "headers": headers}, whole)):
                        raise AssertionError("it was received")
            assert list(tmp_path.iterdir()) == []

    asyncio.run(upload())


# All of it


@pytest.fixture
def copied(indexed: Indexed, tmp_path: Path) -> Iterator[str]:
    """The base address of a server of a copy of the small collection, which may be changed as one likes."""
    folder = shutil.copytree(indexed.folder, tmp_path / "copy.cairn")
    with serving(folder, tmp_path / "cache", roots=(indexed.photos,)) as address:
        yield address


@pytest.mark.slow
def test_no_request_that_the_document_allows_or_forbids_breaks_the_server(
    copied: str, indexed: Indexed, tmp_path: Path
) -> None:
    """Schemathesis makes requests from the OpenAPI document, right ones and wrong ones."""
    import hypothesis
    import schemathesis
    from hypothesis import HealthCheck
    from schemathesis.checks import not_a_server_error

    schema = schemathesis.openapi.from_url(f"{copied}/api/openapi.json")
    tried: dict[str, int] = {}
    photos = _tree(indexed.photos)

    for operation in schema.get_all_operations():
        if operation.ok().path.endswith("/events"):  # it lasts as long as its connection
            continue
        case_of = operation.ok().as_strategy()

        @hypothesis.settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @hypothesis.seed(1)
        @hypothesis.given(case=case_of)
        def ask(case: Any) -> None:
            case.call_and_validate(checks=(not_a_server_error,), headers={"X-Cairn": "1"}, timeout=60)
            tried[case.operation.label] = tried.get(case.operation.label, 0) + 1

        ask()
    document = httpx.get(f"{copied}/api/openapi.json").json()
    assert len(tried) == sum(len(methods) for methods in document["paths"].values()) - 1
    with httpx.Client(base_url=copied) as client:
        _alive(client)
        for job in client.get("/api/jobs").json()["jobs"]:
            client.post(f"/api/jobs/{job['id']}/cancel", headers={"X-Cairn": "1"})
    assert _tree(indexed.photos) == photos
    assert {path.name for path in tmp_path.iterdir()} <= {"copy.cairn", "cache", "scratch"}


def test_the_document_is_valid_and_complete(client: httpx.Client) -> None:
    import jsonschema_rs

    document = client.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    references = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}
    assert references <= schemas.keys() and {"SearchRequest", "MatchRequest", "Problem"} <= references
    for schema in schemas.values():
        jsonschema_rs.meta.validate(schema)
    assert {one["type"] for one in document["components"]["securitySchemes"].values()} == {"http", "apiKey"}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert "422" in operation["responses"] and "HTTPValidationError" not in json.dumps(operation)
