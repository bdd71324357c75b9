"""Nothing that was committed is lost, whenever a process is killed and whatever write fails: see scripts/crashes.py."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.arrays import save_array
from index.faiss_search import FaissOptions, FaissSearch
from index.neighbours import INDEX_FILE, NearestNeighbours, NeighbourOptions
from index.scanning.ivf_search import IvfOptions, IvfSearch
from tests.support.crashes import FAILED_ON, FAILED_ONCE, KILLED, KILLED_SOON, OPERATIONS, choose, judge
from tests.support.paths import ROOT
from tests.support.processes import in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="victims are forked")


def campaign(work: Path, kills: int, failures: int, *more: str) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "scripts" / "crashes.py"), "--kills", str(kills), "--failures", str(failures)]
    ran = subprocess.run([*command, "--work", str(work), "--json", *more], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout)
    assert isinstance(summary, dict)
    return summary


@pytest.mark.slow
def test_a_few_crashes_and_full_disks(tmp_path: Path) -> None:
    summary = campaign(tmp_path, 1, 1, "--operation", "index")
    assert (summary["killed"], summary["findings"]) == (1, 0)
    assert summary["failed"] == (1 if shutil.which("strace") else 0)
    # What was tried is not tried again.
    lines = (tmp_path / "tries.jsonl").read_text().splitlines()
    assert len(lines) == 1 + summary["killed"] + summary["failed"]


@pytest.mark.slow
def test_many_crashes_and_full_disks(tmp_path: Path) -> None:
    summary = campaign(tmp_path, 40, 40, "--seed", "1")
    assert (summary["killed"], summary["findings"]) == (40, 0)
    assert summary["operations"].keys() == set(OPERATIONS)


# What the campaign has found


def no_room(bytes_: int, work: Callable[[], object]) -> None:
    """Call a function in a process whose files cannot grow further, which to it is as if the disk was full."""
    in_child(__name__, partial(_write, bytes_, work))


def _write(bytes_: int, work: Callable[[], object]) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    with pytest.raises(OSError, match="File too large"):
        work()


@pytest.mark.parametrize("length", [200, 3_000, 100_000])
def test_no_array_is_cut_where_the_disk_is_full(tmp_path: Path, length: int) -> None:
    """NumPy itself writes the end of an array through a buffer of C's, and does not look whether that went well."""
    for missing in (1, 100, length * 8 - 1):
        no_room(128 + length * 8 - missing, partial(save_array, tmp_path / "a.npy", np.arange(length)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("backend", "options"), [(FaissSearch, FaissOptions(exact_below=16)), (IvfSearch, IvfOptions(exact_below=0))]
)
def test_no_search_index_is_cut_where_the_disk_is_full(
    tmp_path: Path, backend: type[NearestNeighbours], options: NeighbourOptions
) -> None:
    save = partial(_save_index, backend, options, tmp_path)
    save()
    size = (tmp_path / INDEX_FILE).stat().st_size
    for missing in (1, 500):
        no_room(size - missing, save)


def _save_index(backend: type[NearestNeighbours], options: NeighbourOptions, folder: Path) -> None:
    points = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
    backend.build(points, options).save(folder)


# What is judged by


def state(images: dict[str, str], rankings: str = "same", damaged: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"images": images, "rankings": [rankings], "damaged": list(damaged)}


OLD = state({"a": "1", "b": "2", "moving": "3"})
NEW = state({"a": "1", "b": "changed", "moved": "3", "new": "4"}, "other")


@pytest.mark.parametrize(
    "images",
    [OLD["images"], NEW["images"], {"a": "1", "b": "2", "moved": "3"}, {"a": "1", "b": "changed", "moving": "3"}],
)
def test_half_of_what_is_added_is_no_damage(images: dict[str, str]) -> None:
    assert judge("index", OLD, state(images, "some"), NEW) == []


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (state({"b": "2", "moving": "3"}), "a is lost"),
        (state({"a": "1", "moving": "3", "new": "4"}), "b is lost"),
        (state({"a": "1", "b": "2"}), "moving is lost"),
        (state({"a": "1", "b": "half", "moving": "3"}), "b is neither"),
        (state(OLD["images"], damaged=("a file",)), "damaged: a file"),
        ({}, "the collection is gone"),
    ],
)
def test_what_is_lost_is_noticed(left: dict[str, Any], words: str) -> None:
    assert any(words in finding for finding in judge("index", OLD, left, NEW))


def test_other_commands_leave_what_was_or_what_is_to_be() -> None:
    after = state({"a": "1"}, "other")
    for operation in ("remove", "compact", "retrain", "backup"):
        assert judge(operation, OLD, OLD, after) == judge(operation, OLD, after, after) == []
        assert judge(operation, OLD, state({"a": "1", "b": "2"}, "other"), after) != []  # one of two removed
        assert judge(operation, OLD, state(OLD["images"], "other"), after) != []
    assert judge("create", {}, {}, NEW) == []


def test_tries_follow_from_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    tries = [choose(0, number, 60, OPERATIONS) for number in range(120)]
    assert tries == [choose(0, number, 60, OPERATIONS) for number in range(120)]
    assert {one.way for one in tries[:60]} == {KILLED, KILLED_SOON}
    assert {one.way for one in tries[60:]} == {FAILED_ONCE, FAILED_ON}
    assert {one.operation for one in tries} == set(OPERATIONS)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert {choose(0, number, 60, OPERATIONS).way for number in range(60)} == {KILLED_SOON}
