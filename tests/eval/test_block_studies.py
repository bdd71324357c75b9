"""Clipping and bits of building blocks: errors compared with the descriptors', and refusals."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cairn import main
from eval import block_studies
from eval.patches import evaluate_patches
from index.errors import CairnError
from retrieval.descriptors.blocks.descriptor import named_blocks
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel
from tests.support.learning.boosting_cases import write_views


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set with test pairs."""
    folder = write_views(tmp_path_factory.mktemp("studies") / "set")
    (pairs,) = folder.glob("m50_*_1.txt")
    pairs.rename(folder / pairs.name.replace("_1.txt", "_2.txt"))
    return folder


def test_errors_are_those_of_the_descriptors(folder: Path) -> None:
    clipping, bits = block_studies.studies(["T1a-S2-9"], [folder])
    blocks = named_blocks("T1a-S2-9")

    def error(**changes: object) -> float:
        model = LearntModel("blocks", base_model=replace(blocks, **changes))  # type: ignore[arg-type]
        return 100 * evaluate_patches(folder, LearntDescriptor(model), "test").fpr95

    assert list(clipping["T1a-S2-9"]) == [*map(str, block_studies.RATIOS), "unit"]
    assert clipping["T1a-S2-9"]["1.6"] == bits["T1a-S2-9"]["32"] == error()
    assert clipping["T1a-S2-9"]["2.5"] == error(parameters={**blocks.parameters, "clip": 2.5})
    for number in block_studies.BITS:
        assert bits["T1a-S2-9"][str(number)] == error(bits=number)


def test_a_figure_is_the_mean_over_sets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = iter([{"a": 1.0}, {"a": 4.0}])
    monkeypatch.setattr(block_studies, "study", lambda *_: (found := next(errors), {"b": 2 * found["a"]}))
    assert block_studies.studies(["T1a-S2-9"], [folder, folder]) == (
        {"T1a-S2-9": {"a": 2.5}},
        {"T1a-S2-9": {"b": 5.0}},
    )


@pytest.mark.parametrize("name", ["sift", "T3h", "T9-S4-25", "pixels-S3-9", "none.npz"])
def test_what_is_no_descriptor_of_blocks_is_refused(name: str) -> None:
    with pytest.raises(CairnError):
        block_studies.blocks_of(name)


def test_the_command_tells_all_errors(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["cairn", "evaluate", "blocks", str(folder), *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 0
        return capsys.readouterr().out

    reported = json.loads(run("--descriptor", "T1a-S2-9", "--json"))["errors"]
    clipping, bits = block_studies.studies(["T1a-S2-9"], [folder])
    wanted = [*clipping["T1a-S2-9"].values(), *bits["T1a-S2-9"].values()]
    assert [100 * row["fpr95"] for row in reported] == pytest.approx(wanted)
    assert [row["setting"] for row in reported if row["study"] == "bits"] == [*block_studies.BITS, 32]
    lines = run("--descriptor", "T1a-S2-9").splitlines()
    assert [float(line.split("%")[0]) for line in lines] == pytest.approx(wanted, abs=0.0051)
    assert any("not clipped" in line for line in lines)
