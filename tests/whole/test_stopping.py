"""A command that is stopped takes its worker processes with it, and goes on when it is run again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT
from tests.support.patience import patience

Cairn = Callable[..., Ran]
PATIENCE = 120.0  # seconds, where the machine is busy
SOON = 10.0  # seconds after which no worker may be left

TOLD = "told to stop (SIGTERM); run the same command again to go on."


def start(*arguments: object) -> subprocess.Popen[str]:
    """Run `cairn ARGUMENTS…` in a process of its own, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "cairn", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def workers_at_work(process: subprocess.Popen[str], collection: Path) -> list[psutil.Process]:
    """Wait until photos are being staged; give all processes that the command has started."""
    end = time.monotonic() + patience(PATIENCE)
    while time.monotonic() < end and process.poll() is None:
        if any(collection.glob("staging/*/*.npy")):
            return psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.02)
    pytest.fail(f"no photo was staged: {process.poll()} {process.communicate() if process.poll() else ''}")


@pytest.mark.skipif(os.name != "posix", reason="no SIGTERM")
@pytest.mark.parametrize("whole_group", [pytest.param(False, marks=pytest.mark.slow), True])
def test_sigterm_ends_a_command_with_its_workers_and_it_goes_on(
    indexed: Indexed, tmp_path: Path, cairn: Cairn, whole_group: bool
) -> None:
    collection = tmp_path / "c"
    command = ("index", collection, indexed.photos, "--words", 50, "--workers", 2, "--json")
    process = start(*command)
    children = workers_at_work(process, collection)
    assert sum("joblib" in " ".join(child.cmdline()) for child in children) >= 2
    if whole_group:  # as `systemctl stop` and `timeout` do
        os.killpg(process.pid, signal.SIGTERM)
    else:
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=patience(PATIENCE))
    assert (process.returncode, json.loads(out)) == (143, {"error": TOLD})
    assert err.splitlines()[-1] == f"cairn: {TOLD}" and "Traceback" not in err and "Warning" not in err
    assert psutil.wait_procs(children, timeout=patience(SOON))[1] == []
    staged = len(list(collection.glob("staging/*/*.npy")))
    assert staged
    assert cairn(*command).json["added"] == len(list(indexed.photos.iterdir()))


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a worker ends when it has been idle")
@pytest.mark.slow
def test_no_worker_outlives_a_command_that_is_killed(indexed: Indexed, tmp_path: Path) -> None:
    process = start("index", tmp_path / "c", indexed.photos, "--words", 50, "--workers", 2)
    children = workers_at_work(process, tmp_path / "c")
    process.kill()
    process.communicate()
    assert psutil.wait_procs(children, timeout=patience(SOON))[1] == []


def test_a_worker_that_is_killed_is_one_sentence() -> None:
    code = """
import functools, os, sys
from index.parallel import run
from retrieval.commands.console import run as run_command

sys.argv = ["cairn"]
run_command(lambda **_: list(run([functools.partial(os._exit, 1)] * 4, 2)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("cairn: A worker process was killed") and done.stderr.count("\n") == 1
