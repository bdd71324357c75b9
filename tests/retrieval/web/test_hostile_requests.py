"""Ten thousand hostile requests to a server as people start it: it lives on, and touches nothing but its own."""

import collections
import hashlib
import http.client
import json
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from retrieval.state.tokens import new_token
from retrieval.web.access.passwords import PasswordEntry, change_entry, usual_hasher
from retrieval.web.access.rights import WRITING
from retrieval.web.access.roles import Role
from retrieval.web.routes.every import ROUTERS
from retrieval.web.shelf.routes import router as shelf_router
from tests.conftest import Indexed, Ran
from tests.support.hostile_requests import Asked, Maker
from tests.support.live import running

REQUESTS = 10_000
PARTS = 2  # each at a collection of its own, so that what is left of one does not become too little
PASSWORD = "correct horse"
NUMBERS = ("number", "photos", "photo", "before", "cover")  # parameters and fields that are numbers of photos
FOR_ALL = r"/static/|/login|/logout|/metrics|/api/ready"  # the figures: on this machine
# What no request here can come to: results of work that takes minutes, what needs a photo kept with a search, films.
NEVER = {
    *("GET /api/improve/picture", "GET /api/saved/{search}/photo", "GET /api/jobs/{number}/photos/{place}"),
    "GET /api/photos/{number}/film",
    "GET /api/like",  # no collection here has global descriptors
    "POST /api/rejections",  # either a photo or an upload, and another photo: drawn too seldom
}
CHANGING = {
    (method, route.path)
    for router in (*ROUTERS, shelf_router)
    for route in router.routes
    if WRITING[0] in getattr(route, "dependencies", ())
    for method in getattr(route, "methods", ())
}


def contents(folder: Path) -> dict[str, str]:
    """What lies below a folder, with a checksum of each file."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
    }


class Sender:
    """Sends requests as they are, over one connection for as long as that lasts."""

    def __init__(self, base: str) -> None:
        self.host = urlsplit(base).netloc
        self.connection = http.client.HTTPConnection(self.host, timeout=120)

    def send(self, asked: Asked, headers: dict[str, str]) -> tuple[int, str, bytes]:
        """Give status, type and body of the answer."""
        for attempt in range(2):
            try:
                return self._send(asked, headers)
            except (http.client.RemoteDisconnected, http.client.CannotSendRequest, ConnectionError, BrokenPipeError):
                self.connection.close()
                if attempt:
                    raise
        raise AssertionError

    def _send(self, asked: Asked, headers: dict[str, str]) -> tuple[int, str, bytes]:
        # A method that takes no body may have one all the same.
        self.connection.request(asked.method, asked.target, asked.body or None, {**asked.headers, **headers})
        answer = self.connection.getresponse()
        kind = answer.getheader("content-type", "")
        if "event-stream" in kind:  # it lasts as long as its connection
            body = answer.fp.readline()
            self.connection.close()
        else:
            body = answer.read()
        return answer.status, kind, body


def sign_in(base: str) -> str:
    """The cookie of one who may write."""
    with httpx.Client(base_url=base, headers={"Accept": "text/html"}) as client:
        page = client.get("/login").text
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        answer = client.post("/login", data={**hidden, "name": "anna", "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


@pytest.mark.slow
def test_ten_thousand_requests_break_nothing(indexed: Indexed, tmp_path: Path, cairn: Callable[..., Ran]) -> None:
    world = tmp_path / "world"
    home, photos = world / "home", world / "photos"
    for folder in (home, world / "outside", world / "scratch", world / "bin"):
        folder.mkdir(parents=True)
    shutil.copytree(indexed.photos, photos / "demo")
    for name in ("outside/secret.txt", "secret.jpg", "photos/notes.txt"):
        (world / name).write_text("secret")
    places = [home / f"part{part}" for part in range(PARTS)]
    for part, folder in enumerate(places):  # each with photos of its own, which requests may have moved to the bin
        shutil.copytree(indexed.photos, photos / f"part{part}")
        assert cairn("index", folder, photos / f"part{part}", "--max-side", 400).code == 0
        assert cairn("group", folder).code == 0
    tokens = {}
    passwords = world / "passwords"
    change_entry(passwords, "anna", token=False, entry=PasswordEntry("anna", Role.WRITE, usual_hasher().hash(PASSWORD)))
    for role in Role:
        tokens[role], kept = new_token()
        change_entry(passwords, f"program-{role}", token=True, entry=PasswordEntry(f"program-{role}", role, kept))
    writer = {"Authorization": f"Bearer {tokens[Role.WRITE]}"}
    pictures = collections.Counter(contents(photos).values())
    surroundings = {name: sum for name, sum in contents(world).items() if not name.startswith(("home/", "photos/"))}

    command = ("open", home, "--no-browser", "--port", 0, "--search-limit", 0, "--photos", photos)
    options = ("--bin", world / "bin", "--password-file", passwords)
    with running([*command, *options], world / "scratch", tmp_path / "said.txt") as base:
        strangers = (
            {},
            {"X-Cairn": "1"},
            {"Authorization": "Bearer x" * 9},
            {"Authorization": "Basic YTpi"},
            {"Cookie": "cairn-0=x"},
        )
        readers = ({"Authorization": f"Bearer {tokens[Role.READ]}"},)
        sender = Sender(base)
        tried: collections.Counter[str] = collections.Counter()
        met: collections.Counter[str] = collections.Counter()
        statuses: collections.Counter[int] = collections.Counter()
        with httpx.Client(base_url=base, headers=writer, timeout=120) as client:
            for part, folder in enumerate(places):
                inner, outer = makers(client, folder.name, part)
                for place in range(REQUESTS // PARTS):
                    if place % 50 == 0:  # a request may have signed out
                        cookie = sign_in(base)
                        forged = (
                            {"Cookie": cookie},
                            {"Cookie": cookie, "Origin": "https://evil.example"},
                            {"Cookie": cookie, "Sec-Fetch-Site": "cross-site"},
                        )
                        signed_in = ({"Cookie": cookie, "X-Cairn": "1"}, {"Cookie": cookie, "Origin": base})
                        writers = (writer, writer, *signed_in)
                        listed = httpx.get(f"{base}/api/sessions", headers={"Cookie": cookie}).json()["sessions"]
                        outer.known["session"] = [one["id"] for one in listed]
                        outer.known["title"] = [f"Été {place}", "spare"]
                        outer.known["photo"] = inner.known["number"]  # as others may be in the bin
                        binned = client.get("/api/bin").json()["collections"]
                        outer.known["folder"] = [one["folder"] for one in binned] or ["x"]
                    maker = outer if place % 10 == 9 else inner
                    asked = maker.make(place // 10 if maker is outer else place - place // 10)
                    drawn = maker.random.random()
                    who = strangers if drawn < 0.1 else readers if drawn < 0.2 else forged if drawn < 0.3 else writers
                    if asked.method == "DELETE" and asked.operation.endswith("/collections/{name}"):
                        asked.target = asked.target.replace(folder.name, "spare")
                    status, kind, body = sender.send(asked, maker.random.choice(who))
                    tried[asked.operation] += 1
                    statuses[status] += 1
                    wrong = judge(asked, status, kind, body, str(world))
                    if who is strangers and not re.match(FOR_ALL, asked.target) and status < 300:
                        wrong = "a stranger was let in"
                    if who is forged and asked.method not in ("GET", "HEAD", "OPTIONS") and status < 400:
                        wrong = "another site had its way"
                    if who is readers and (asked.method, bare(asked.operation)) in CHANGING and status < 400:
                        wrong = "one who may read changed something"
                    assert not wrong, (wrong, asked, status, body[:500])
                    if status < 400 and not asked.spoilt:
                        met[f"{asked.operation.partition(' ')[0]} {bare(asked.operation)}"] += 1
                    if place % 100 == 99:
                        keep_going(client, folder.name, inner)
                assert client.get(f"/c/{folder.name}/api/health").json()["status"] == "ok"
            every = {f"{method} {bare(path)}" for one in (inner, outer) for method, path, _ in one.operations}
        assert tried.total() == REQUESTS and min(tried.values()) >= 10
        assert every - met.keys() <= NEVER, (every - met.keys(), statuses)
        assert statuses[503] + statuses[507] < REQUESTS // 50, statuses

    left = contents(world)
    del left["passwords.key"], left["passwords.key.lock"]  # lists who is signed in
    own = ("home/", "photos/", "bin/")
    assert {name: sum for name, sum in left.items() if not name.startswith(own)} == surroundings
    # All photos are in their places or in the bin, where uploads may be as well.
    kept = collections.Counter(sum for name, sum in left.items() if name.startswith("photos/"))
    in_bin = collections.Counter(sum for name, sum in left.items() if re.fullmatch(r"bin/[^/]+/photo/[^/]+", name))
    assert not kept - pictures and not pictures - (kept + in_bin)
    for folder in [*home.iterdir(), *(home / "bin").glob("*")]:
        if (folder / "collection.toml").exists():
            checked = cairn("check", folder, "--json")
            assert checked.code == 0 and checked.json["ok"], checked.out
    assert set((tmp_path / "said.txt").read_text().splitlines()) == set()  # nobody fills the log


def judge(asked: Asked, status: int, kind: str, body: bytes, secret: str) -> str:
    """Say what is wrong with an answer; "" for nothing. `secret`: a path that nobody is to be told."""
    if status >= 500 and status not in (503, 507):
        return "the server broke"
    if b"Traceback" in body or secret.encode() in body:
        return "it tells too much"
    if status >= 400 and asked.method != "HEAD" and "json" in kind and list(json.loads(body)) != ["detail"]:
        return "it is no sentence"
    return ""


def bare(operation: str) -> str:
    """The path of an operation, as a route has it."""
    return re.sub(r"^(\w+ )?(/c/[^/]+)?", "", operation)


def makers(client: httpx.Client, name: str, seed: int) -> tuple[Maker, Maker]:
    """What makes requests to a collection, and to the list of collections."""
    prefix = f"/c/{name}"
    listed = client.get(f"{prefix}/api/photos", params={"limit": 100}).json()["photos"]
    numbers, names = [one["number"] for one in listed], [one["name"] for one in listed]
    known: dict[str, list[Any]] = {key: numbers for key in NUMBERS}
    known |= {
        "name": names,
        "root": [0],
        "path": ["", "demo"],
        "album": [1],
        "albums": [1, 2],
        "search": [1],
        "group": [1],
        "size": [128, 512, 2048, "max", "100,"],
        "region": ["full", "square", "pct:10,10,50,50"],
        "rotation": ["0", "90"],
        "file": ["default.jpg", "gray.png"],
    }
    known |= searched(numbers) | {
        "place": [0, 1],
        "folder": ["", "Summer"],
        "tag": ["red"],
    }
    known |= {"taken_from": ["1923"], "taken_to": ["1950-05"], "near": ["51,3.7,10"], "where": ["place=Ghent"]}
    known |= {"box": [[20, 20, 200, 160]], "engine": ["tf-idf", "tf-idf-sp"]}
    inner = Maker(client.get(f"{prefix}/api/openapi.json").json(), prefix, seed, known)
    client.post("/api/collections", json={"title": "spare"})
    above = {"name": [name, "spare", "ete-0"], "root": [0], "path": ["demo"], "size": [128]}
    return inner, Maker(client.get("/api/openapi.json").json(), "", seed + 1000, above)


def searched(numbers: list[int]) -> dict[str, list[Any]]:
    """Queries of photos, in addresses (the second with a box) and in JSON."""
    return {"q": [str(numbers[0]), f"{numbers[-1]}:20,20,200,160"], "queries": [[{"photo": one}] for one in numbers]}


def keep_going(client: httpx.Client, name: str, maker: Maker) -> None:
    """End the work that was begun, and look up what requests may be about."""
    client.post("/api/collections", json={"title": "spare"})
    prefix = f"/c/{name}/api"
    jobs = client.get(f"{prefix}/jobs").json()["jobs"]
    for job in jobs:
        if job["state"] in ("queued", "running", "paused") and job["kind"] != "index":
            client.post(f"{prefix}/jobs/{job['id']}/cancel")
    job = client.post(f"{prefix}/jobs", json={"kind": "check"}).json()["id"]
    client.post(f"{prefix}/jobs/{job}/pause")
    albums = [one["album"] for one in client.get(f"{prefix}/albums").json()["albums"]]
    for _ in range(3 - len(albums)):
        wanted = {"name": secrets.token_hex(4), "photos": maker.known["photos"]}
        made = client.post(f"{prefix}/albums", json=wanted)
        assert made.status_code == 201, made.text
        albums.append(made.json()["album"])
    client.post(f"{prefix}/albums/{albums[0]}/shared", json={})
    links = [one["id"] for one in client.get(f"{prefix}/shared").json()["links"]]
    wanted = {"name": secrets.token_hex(4), "queries": [{"photo": maker.known["photo"][0]}]}
    client.post(f"{prefix}/saved", files={"request": (None, json.dumps(wanted))})
    searches = [one["id"] for one in client.get(f"{prefix}/saved").json()]
    entries = [one["id"] for one in client.get(f"{prefix}/bin").json()]
    if entries:  # or all photos would be in the bin before long
        client.post(f"{prefix}/bin/back", json={"entries": entries[1:] or entries})
    client.post(f"{prefix}/hidden/show", json={"photos": maker.known["number"]})
    listed = client.get(f"{prefix}/photos", params={"limit": 100}).json()["photos"]
    if len(listed) < 5:
        client.post(f"{prefix}/jobs", json={"kind": "index", "source": "known"})
    maker.known |= {"album": albums, "albums": albums, "search": searches or [1], "entries": entries or ["x"]}
    maker.known |= {"link": links or ["x"]}
    maker.known |= {"entry": entries[:1] or ["x"], "job": [job, *(one["id"] for one in jobs[-3:])]}
    if listed:
        numbers = [one["number"] for one in listed]
        maker.known |= {key: numbers for key in NUMBERS} | searched(numbers)
