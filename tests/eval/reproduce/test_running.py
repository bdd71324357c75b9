"""Running steps: each once, in order, and resuming."""

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eval.reproduce.log import LOG, append_log
from eval.reproduce.running import COMMAND, RESULT, Bench, Standing, printed, run_command, run_steps
from eval.reproduce.steps import Data, Here, Made, Printed, Step
from index.errors import CairnError

LEARN = Step("learn", ("learn", "descriptor", Data("liberty"), "--out", Here("d.npz")), 2.0)
TEST = Step("test", ("evaluate", "patches", Data("liberty"), "--descriptor", Made(LEARN, "d.npz")), 0.5)
DRAW = Step("draw", ("plot", "regions", Made(LEARN, "d.npz"), "--out", Here("r.svg")), 0.1, prints=False)
STEPS = (LEARN, TEST, DRAW)


class Commands:
    """Records calls, and answers."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.fails = ""
        self.answer: dict[str, object] = {"fpr95": 0.25}

    def __call__(self, arguments: Sequence[str]) -> str:
        self.ran.append(list(arguments))
        if self.fails and self.fails in arguments:
            raise CairnError("It is broken.")
        return json.dumps(self.answer) if "--json" in arguments else ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "sets" / "liberty"
    folder.mkdir(parents=True)
    (folder / "info.txt").write_text("0 0\n")
    (folder / "patches0000.bmp").write_bytes(b"BM")
    return folder.parent


@pytest.fixture
def commands() -> Commands:
    return Commands()


def test_steps_run_once_and_in_order(root: Path, tmp_path: Path, commands: Commands) -> None:
    bench = Bench(root, tmp_path / "steps", workers=2, run=commands)
    reported: list[Standing] = []
    results = run_steps(bench, STEPS, reported.append)
    patches, learnt = str(root / "liberty"), str(bench.home(LEARN) / "d.npz")
    assert commands.ran == [
        ["learn", "descriptor", patches, "--out", learnt, "--json", "--workers", "2"],
        ["evaluate", "patches", patches, "--descriptor", learnt, "--json"],
        ["plot", "regions", learnt, "--out", str(bench.home(DRAW) / "r.svg")],
    ]
    assert [(one.done, one.of, one.title) for one in reported] == [(0, 3, "learn"), (1, 3, "test"), (2, 3, "draw")]
    assert [one.hours_left for one in reported] == pytest.approx([2.6, 0.6, 0.1])
    assert printed(results)[TEST.key] == {"fpr95": 0.25}
    assert run_steps(bench, STEPS, reported.append).keys() == results.keys()
    assert len(commands.ran) == len(reported) == 3


def test_a_run_that_failed_goes_on_where_it_was(root: Path, tmp_path: Path, commands: Commands) -> None:
    bench = Bench(root, tmp_path / "steps", run=commands)
    commands.fails = "patches"
    with pytest.raises(CairnError, match=r"test: It is broken\. The command was: cairn evaluate patches"):
        run_steps(bench, STEPS)
    assert bench.result(LEARN) is not None
    assert bench.result(TEST) is None
    assert (bench.home(TEST) / COMMAND).read_text().startswith("cairn evaluate patches")
    commands.fails = ""
    run_steps(bench, STEPS)
    assert [one[0] for one in commands.ran] == ["learn", "evaluate", "evaluate", "plot"]


def test_what_was_run_on_other_data_is_run_again(root: Path, tmp_path: Path, commands: Commands) -> None:
    run_steps(Bench(root, tmp_path / "steps", run=commands), [LEARN])
    moved = root.rename(tmp_path / "moved")
    run_steps(Bench(moved, tmp_path / "steps", run=commands), [LEARN])
    assert len(commands.ran) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_what_a_killed_run_left_running_is_not_run_beside_it(root: Path, tmp_path: Path, commands: Commands) -> None:
    bench = Bench(root, tmp_path / "steps", run=commands)

    def leave_running(arguments: Sequence[str]) -> str:
        left.append(subprocess.Popen(["sleep", "60"], close_fds=False))
        raise KeyboardInterrupt

    left: list[subprocess.Popen[bytes]] = []
    with pytest.raises(KeyboardInterrupt):
        run_steps(replace(bench, run=leave_running), [LEARN])
    with pytest.raises(CairnError, match="learn: another process is running this in"):
        run_steps(bench, STEPS)
    assert not commands.ran
    left[0].kill()
    left[0].wait()
    run_steps(bench, STEPS)
    assert len(commands.ran) == 3


def test_half_a_result_is_none(root: Path, tmp_path: Path, commands: Commands) -> None:
    bench = Bench(root, tmp_path / "steps", run=commands)
    run_steps(bench, [LEARN])
    (bench.home(LEARN) / RESULT).write_text("{}")
    assert bench.result(LEARN) is None


def test_missing_data_are_named_with_the_command_that_gets_them(tmp_path: Path, commands: Commands) -> None:
    bench = Bench(tmp_path, tmp_path / "steps", run=commands)
    with pytest.raises(CairnError, match="cairn data get liberty"):
        bench.check_data(["liberty"])
    planned = Bench(tmp_path, tmp_path / "steps", planning=True)
    liberty = shlex.quote(str(tmp_path / "liberty"))
    assert planned.command(TEST).startswith(f"cairn evaluate patches {liberty} --descriptor ")


def test_a_command_that_prints_no_object_is_told_of(root: Path, tmp_path: Path) -> None:
    bench = Bench(root, tmp_path / "steps", run=lambda arguments: "Traceback")
    with pytest.raises(CairnError, match="printed no JSON object, but 'Traceback'"):
        run_steps(bench, [LEARN])


def test_a_number_that_a_step_printed_is_an_argument_of_another(root: Path, tmp_path: Path, commands: Commands) -> None:
    bench = Bench(root, tmp_path / "steps", run=commands)
    requested = Step("asked", ("plot", "roc", "--footprint", Printed(TEST, ("fpr95",), "sift=")), prints=False)
    assert bench.command(requested) == "cairn plot roc --footprint 'sift=<test>'"
    assert requested.before == [TEST]
    run_steps(bench, [*STEPS, requested])
    assert commands.ran[-1] == ["plot", "roc", "--footprint", "sift=0.25"]
    assert bench.result(requested) is not None


def test_the_log_has_a_line_for_each_number(root: Path, tmp_path: Path, commands: Commands) -> None:
    printed = {"mAP": 0.5, "name": "x", "whole": True, "history": [{"test": 0.1}, {"test": None}, {"test": 0.3}]}
    commands.answer = printed
    log = tmp_path / "out" / LOG
    bench = Bench(root, tmp_path / "steps", run=commands)
    run_steps(bench, STEPS[:2], done=lambda step, result: append_log(log, "paper/table1", step, result))
    run_steps(bench, STEPS[:2], done=lambda step, result: append_log(log, "paper/table1", step, result))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(one["step"], one["name"], one["at"]) for one in lines[:4]] == [
        ("learn", "seconds", None),
        ("learn", "printed.mAP", None),
        ("learn", "printed.history.test", 0),
        ("learn", "printed.history.test", 2),
    ]
    assert [one["value"] for one in lines[1:4]] == [0.5, 0.1, 0.3]
    assert len(lines) == 8  # each step once
    assert {one["experiment"] for one in lines} == {"paper/table1"}
    assert lines[4]["key"] == TEST.key


@pytest.mark.slow
def test_a_real_command_answers_or_says_why_not(tmp_path: Path) -> None:
    assert "experiments" in json.loads(run_command(["reproduce", "list", "--json"]))
    with pytest.raises(CairnError, match="nowhere"):
        run_command(["info", str(tmp_path / "nowhere"), "--json"])
