"""A server under load by a visitor with hostile photos, and response times for another."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np

from retrieval.state.tokens import new_token
from retrieval.web.access.passwords import PasswordEntry, change_entry
from retrieval.web.access.roles import Role
from tests.support.hostile_photos import hostile_photo
from tests.support.live import running
from tests.support.paths import ROOT
from tests.support.patience import patience

CONNECTIONS = 6  # parallel connections of the attacker
SLOW = 1.0  # largest 95th percentile of seconds of a thumbnail for others
MOST_SECONDS = 120.0  # of one request, on an idle machine


def upload_attack(collection: Path, folder: Path, count: int, seed: int) -> tuple[list[str], dict[str, float]]:
    """Upload hostile photos from several connections, while another visitor views pictures.

    Parameters
    ----------
    collection : Path
        The collection to serve.
    folder : Path
        For files of the server.
    count : int
        Photos.
    seed : int
        Of all random draws.

    Returns
    -------
    findings : list of str
        Failures.
    figures : dict of str to float
        ``p50``, ``p95`` and ``max`` of the seconds that a thumbnail took for the other visitor, and ``pictures``.
    """
    folder.mkdir()
    passwords, tokens = folder / "passwords", {}
    for name in ("attacker", "visitor"):
        tokens[name], kept = new_token()
        change_entry(passwords, name, token=True, entry=PasswordEntry(name, Role.READ, kept))
    cache = collection / "cache"
    findings: list[str] = []
    waited: list[float] = []
    draw = random.Random(f"{seed} upload")
    photos = [hostile_photo(draw) for _ in range(count)]
    statuses: Counter[int] = Counter()
    over = threading.Event()

    serve = ("serve", collection, "--port", 0, "--search-limit", 0, "--password-file", passwords)
    with running(serve, folder, folder / "said.txt") as address:
        attacker, visitor = (
            httpx.Client(
                base_url=address, headers={"Authorization": f"Bearer {tokens[name]}"}, timeout=patience(MOST_SECONDS)
            )
            for name in ("attacker", "visitor")
        )

        def look() -> None:
            numbers = [one["number"] for one in visitor.get("/api/photos").json()["photos"]]
            while not over.is_set():
                # Not cached: each is decoded.
                shutil.rmtree(cache, ignore_errors=True)
                began = time.monotonic()
                answer = visitor.get(
                    f"/api/photos/{numbers[len(waited) % len(numbers)]}/thumbnail", params={"size": 512}
                )
                waited.append(time.monotonic() - began)
                if answer.status_code != 200:
                    findings.append(f"the visitor got {answer.status_code}: {answer.text[:200]}")
                time.sleep(0.05)

        def send(one: tuple[str, bytes]) -> None:
            kind, content = one
            try:
                if len(content) % 2:
                    answer = attacker.post("/api/preview", files={"photo": ("x.jpg", content)})
                else:
                    request = (None, '{"queries": [{"upload": 0}], "turns": 1}')
                    answer = attacker.post("/api/search", files=[("request", request), ("photos", ("x.jpg", content))])
            except httpx.HTTPError as error:
                findings.append(f"{kind}: no answer: {error!r}")
                return
            statuses[answer.status_code] += 1
            if answer.status_code >= 500 and answer.status_code != 503:
                findings.append(f"{kind}: {answer.status_code}: {answer.text[:200]}")

        other = threading.Thread(target=look)
        other.start()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(send, photos))
        over.set()
        other.join()
        if visitor.get("/api/health").status_code != 200:
            findings.append("the server is not well")
    figures = {"p50": float(np.quantile(waited, 0.5)), "p95": float(np.quantile(waited, 0.95)), "max": max(waited)}
    if figures["p95"] > patience(SLOW):
        findings.append(f"a thumbnail took others {figures['p95']:.2f} s (p95)")
    left = [path for path in folder.iterdir() if not path.name.startswith(("passwords", "said"))]
    if left:
        findings.append(f"left behind: {left}")
    return findings, figures | {"pictures": len(waited)} | {f"status {code}": n for code, n in statuses.items()}


def index_attack(collection: Path, folder: Path, count: int, seed: int) -> tuple[list[str], dict[str, float]]:
    """Index hostile photos among good ones; return failures, and the seconds."""
    from tests.support.hostile import encode, photo

    draw, findings = random.Random(f"{seed} index"), []
    folder.mkdir()
    for place in range(count):
        (folder / f"hostile{place:03}.jpg").write_bytes(hostile_photo(draw)[1])
    good = {f"good-{name}.png" for name in ("astronaut", "coffee")}
    for name in good:
        (folder / name).write_bytes(encode(photo(name[5:-4]), "PNG"))
    began = time.monotonic()
    command = [sys.executable, "-m", "cairn", "index", str(collection), str(folder), "--json"]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, timeout=patience(count * MOST_SECONDS / CONNECTIONS)
        )
    except subprocess.TimeoutExpired:
        return ["indexing does not end"], {}
    seconds = time.monotonic() - began
    if ran.returncode not in (0, 1) or "Traceback" in ran.stderr:
        findings.append(f"indexing broke: exit code {ran.returncode}: {ran.stderr[-1000:]}")
    else:
        report = json.loads(ran.stdout)
        failed = {Path(one["path"]).name for one in report["failed"]}
        if failed & good or not report["added"]:
            findings.append(f"good photos were lost: {sorted(failed & good)}")
        if any(len(one["reason"]) > 500 or not one["reason"].isprintable() for one in report["failed"]):
            findings.append("a reason is no sentence")
    return findings, {"seconds": seconds}
