"""The units for systemd: they are valid, run as an ordinary user, and their commands are ones that there are."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.documentation.command_reference import pages
from tests.support.command_tree import command_tree
from tests.support.paths import ROOT

UNITS = ("cairn.service", "cairn-worker.service")
SERVE = dict(pages(command_tree()))[("cairn", "serve")]


def _read(name: str) -> dict[str, list[str]]:
    """The settings of a unit by their names."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "deploy" / name).read_text().splitlines():
        if re.match(r"[A-Z]", line):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def _command(name: str) -> list[str]:
    """The command of a unit, with what it and the example in it say of its variables."""
    unit = _read(name)
    variables = dict(pair.split("=", 1) for line in unit["Environment"] for pair in shlex.split(line))
    text = (ROOT / "deploy" / name).read_text()
    variables |= dict(re.findall(r"^#   (\w+)=(.*)$", text, re.MULTILINE))
    (line,) = unit["ExecStart"]
    return shlex.split(re.sub(r"\$\{(\w+)\}|\$(\w+)", lambda found: variables[found[1] or found[2]], line))


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_them(name: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    text = (ROOT / "deploy" / name).read_text()
    # It looks whether the program is there.
    program = f'"{Path(sys.executable).parent}/\\1"'.replace("%", "%%")
    (tmp_path / name).write_text(re.sub(r"/opt/cairn/bin/(\S+)", program, text))
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / name], capture_output=True, text=True, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if name in line]
    assert (done.returncode, said) == (0, [])


@pytest.mark.parametrize("name", UNITS)
def test_they_run_as_an_ordinary_user_and_write_in_one_folder(name: str) -> None:
    unit = _read(name)
    assert unit["User"] == ["cairn"] and unit["NoNewPrivileges"] == ["yes"] and unit["CapabilityBoundingSet"] == [""]
    assert unit["ProtectSystem"] == ["strict"]
    assert [path.lstrip("-") for path in unit["ReadWritePaths"]] == ["/srv/cairn"]
    assert not {"Password", "PGPASSWORD"} & set(" ".join(unit["Environment"]).replace("=", " ").split())


def test_who_is_started_again() -> None:
    server, worker = map(_read, UNITS)
    assert server["Restart"] == ["on-failure"]
    # A worker ends, without a failure, when its scheduler does.
    assert worker["Restart"] == ["always"] and worker["StartLimitIntervalSec"] == ["0"]
    # One process that takes too much memory does not end all.
    assert server["OOMPolicy"] == worker["OOMPolicy"] == ["continue"]


def test_the_command_of_the_server_can_be_parsed() -> None:
    program, name, *arguments = _command("cairn.service")
    assert (program, name) == ("/opt/cairn/bin/cairn", "serve")
    given = SERVE.make_context(name, arguments).params
    assert given["host"] == "127.0.0.1" and given["workers"] == 4


def test_the_command_of_the_workers_can_be_parsed() -> None:
    main: Any = pytest.importorskip("distributed.cli.dask_worker", reason="Dask is not installed").main
    program, name, *arguments = _command("cairn-worker.service")
    assert (program, name) == ("/opt/cairn/bin/dask", "worker")
    given = main.make_context(name, arguments).params
    assert (given["nthreads"], given["n_workers"], given["scheduler"]) == (1, "16", "tls://front.internal:8786")
