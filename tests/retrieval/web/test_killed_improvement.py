"""Improving through the server, with server and job killed at random moments: in the end it is as if nothing was."""

import os
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

import learning.library.improving as improving
from learning.library.choices import ImproveOptions
from learning.library.improving import improve
from retrieval.collection.layout import IMPROVING
from retrieval.integrity.check import check_collection
from tests.conftest import Indexed
from tests.learning.library.test_improving import Learning
from tests.retrieval.web.test_serve import serving
from tests.support.patience import patience

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="processes are killed")]

OPEN = ("queued", "running")
TIMES = ("at", "seconds", "collection")  # what no two runs have in common
# A job whose own process dies three times is given up; one whose server dies is not.
KILLS = ("server", "job", "server", "job", "server")


def job_of(client: httpx.Client) -> dict[str, Any]:
    """The one job that there is."""
    (job,) = client.get("api/jobs").json()["jobs"]
    assert isinstance(job, dict)
    return job


def improved(folder: Path, kills: list[tuple[str, float]]) -> tuple[dict[str, Any], float]:
    """Improve a collection through servers; give what is then to be seen of it, and the seconds that it took.

    `kills`: what is killed, and after how many seconds of work.
    """
    began, left, asked = time.monotonic(), list(kills), False
    while True:
        with (
            serving(folder, "--workers", 1, OMP_NUM_THREADS="1") as (server, address),
            httpx.Client(base_url=address, timeout=60, headers={"X-Cairn": "1"}) as client,
        ):
            if not asked:
                assert client.post("api/jobs", json={"kind": "improve"}).status_code == 201
                asked, began = True, time.monotonic()
            while job_of(client)["state"] in OPEN and (not left or left[0][0] == "job"):
                time.sleep(left[0][1] if left else 0.2)
                if left:
                    left.pop(0)
                    kill_job(server.pid)
            if left:  # the server is killed as this block is left
                time.sleep(left.pop(0)[1])
                below = psutil.Process(server.pid).children(recursive=True)
                server.kill()
                assert psutil.wait_procs(below, timeout=patience(15))[1] == []
                continue
            seconds = time.monotonic() - began
            return seen(client, folder), seconds


def kill_job(server: int) -> None:
    """Kill the process that does the work, where one is under way."""
    for child in psutil.Process(server).children(recursive=True):
        with suppress(psutil.Error):
            if "retrieval.jobs.child" in child.cmdline():
                os.kill(child.pid, signal.SIGKILL)


def seen(client: httpx.Client, folder: Path) -> dict[str, Any]:
    """What came of it, and what is found now."""
    job = job_of(client)
    assert job["state"] == "done", job
    last = client.get("api/improve").json()["last"]
    answers = [client.get("api/search", params={"q": number, "turns": 1}).json() for number in (0, 3)]
    photos = client.get("api/photos", params={"limit": 500}).json()
    assert check_collection(folder).ok and not (folder / IMPROVING).exists()
    return {
        "result": {key: value for key, value in job["result"].items() if key not in TIMES},
        "last": {key: value for key, value in last.items() if key not in TIMES},
        "answers": [answer["results"] for answer in answers],
        "photos": photos["photos"],
    }


@pytest.mark.parametrize("part", ["learning", "switching"])
def test_killed_at_random_moments_it_ends_as_if_undisturbed(
    part: str, indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = shutil.copytree(indexed.folder, tmp_path / "prepared.cairn")
    if part == "switching":  # what was learnt is better, which so few photos cannot say
        with monkeypatch.context() as patch:
            patch.setattr(improving, "learn_from_photos", Learning("better"))
            improve(prepared, ImproveOptions(dry_run=True, workers=1))
    undisturbed, seconds = improved(shutil.copytree(prepared, tmp_path / "one.cairn"), [])
    assert undisturbed["last"]["switched"] == (part == "switching")
    draw = random.Random(1)
    kills = [(what, draw.uniform(0.2, max(1.0, seconds / 3))) for what in KILLS]
    disturbed, _ = improved(shutil.copytree(prepared, tmp_path / "two.cairn"), kills)
    assert disturbed == undisturbed
