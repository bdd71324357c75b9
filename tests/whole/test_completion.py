"""The shell completes commands, options and their values, with the scripts that the command prints for it."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from index.options.declaration import build, options_of, values_of
from index.search_backends import search_backend
from retrieval.collection.options import CollectionOptions
from retrieval.regions.detectors.registry import find_detector
from retrieval.search.options import SearchOptions
from tests.support.paths import ROOT


def _answer(shell: str, **environment: str) -> str:
    """What `cairn` says to a shell that asks."""
    requested = os.environ | {"_CAIRN_COMPLETE": shell} | environment
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['cairn']; import cairn; cairn.main()"],
        cwd=ROOT,
        env=requested,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cairn query c.cairn a.jpg --engine tf", ["tf-idf", "tf-idf-sp"]),
        ("cairn index c.cairn photos --detector d", ["dog-affine"]),
        ("cairn index c.cairn photos --descriptor sif", ["sift"]),
    ],
)
def test_values_are_completed(line: str, expected: list[str]) -> None:
    words = _answer("complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(line.split()) - 1)).split()
    assert words == expected


def test_values_that_are_offered_are_taken() -> None:
    from retrieval.descriptors.registry import DESCRIPTORS, MODELS

    own = options_of(CollectionOptions, SearchOptions)
    assert {*own["descriptor"].option.names} == {*DESCRIPTORS, *MODELS}
    for name in ("engine", "tf", "expand"):
        for value in own[name].option.names:
            assert values_of(build(SearchOptions, {name: value}))[name] == value
    for value in own["signature"].option.names:
        assert build(CollectionOptions, {"signature": value}).signature == value
    assert find_detector(own["detector"].option.names[0]) and search_backend(own["search"].option.names[0])


@pytest.mark.slow
def test_bash_completes_by_the_script_that_it_is_given(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    command = tmp_path / "cairn"
    # Not by `#!`, after which no path may have a space.
    python = shlex.quote(sys.executable)
    command.write_text(f'#!/bin/sh\nexec {python} -c "from cairn import main; main()" "$@"\n')
    command.chmod(0o755)
    (tmp_path / "script").write_text(_answer("source_bash"))
    program = "source script; COMP_WORDS=(cairn qu); COMP_CWORD=1; _cairn_completion cairn; echo ${COMPREPLY[@]}"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--norc", "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("query\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "line", "registers"),
    [("zsh", "#compdef cairn", "_CAIRN_COMPLETE=complete_zsh"), ("fish", "complete --command cairn", "complete_fish")],
)
def test_other_shells_get_scripts_too(shell: str, line: str, registers: str) -> None:
    script = _answer(f"source_{shell}")
    assert line in script and registers in script
    requested = {"_TYPER_COMPLETE_ARGS": "cairn que", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert "query" in _answer(f"complete_{shell}", **requested)
