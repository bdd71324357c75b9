"""The examples of rankings and patch descriptors of one's own: what they write, Cairn's commands score the same."""

import re
from collections.abc import Callable
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from PIL import Image

from eval.demo.synthetic import DemoCollection
from eval.hpatches.release import IMAGES
from learning.patches.phototour import write_bitmaps, write_info, write_pairs
from tests.conftest import Ran
from tests.support.paths import ROOT

Cairn = Callable[..., Ran]
EXAMPLES = ROOT / "docs" / "examples"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs an example, and gives what it prints."""

    def call(name: str, *arguments: object) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", [name, *map(str, arguments)])
            run_path(str(EXAMPLES / name), run_name="__main__")
        return capfd.readouterr().out

    return call


def test_a_ranking_of_ones_own(run: Callable[..., str], demo: DemoCollection, tmp_path: Path) -> None:
    table = tmp_path / "ranking.csv"
    printed = run("score_a_ranking.py", demo.images, demo.gt, table)
    found = re.fullmatch(r"mAP (0\.\d+|1\.0+) over (\d+) queries\n", printed)
    assert found is not None and float(found[1]) > 0.3 and len(table.read_text().splitlines()) > 50


def test_patch_descriptors_of_ones_own(run: Callable[..., str], cairn: Cairn, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    textures = rng.normal(128, 40, (40, 8, 8)).repeat(8, 1).repeat(8, 2)
    points = np.repeat(np.arange(40), 2)
    views = (textures[points] + rng.normal(0, 30, (80, 64, 64))).clip(0, 255).astype(np.uint8)
    phototour = tmp_path / "phototour"
    phototour.mkdir()
    write_bitmaps(phototour, views)
    write_info(phototour, points, np.zeros(80, int))
    even = np.arange(0, 80, 2)
    write_pairs(phototour, 2, np.concatenate([even, even]), np.concatenate([even + 1, (even + 9) % 80]), points)
    for options in ((), ("--numbers",)):
        printed = run("own_patch_descriptors.py", phototour, tmp_path / "rows.npy", *options)
        assert printed == "FPR95 0.00% over 80 pairs\n"

    for name, textured in (("i_a", textures[:20]), ("v_b", textures[20:])):
        folder = tmp_path / "data" / "hpatches-release" / name
        folder.mkdir(parents=True)
        for image in IMAGES:
            noisy = np.pad(textured, ((0, 0), (0, 1), (0, 1)), "edge") + rng.normal(0, 20, (20, 65, 65))
            stacked = noisy.clip(0, 255).astype(np.uint8).reshape(-1, 65)
            Image.fromarray(stacked).save(folder / f"{image}.png")
    rows = tmp_path / "rows"
    printed = run("own_patch_descriptors.py", tmp_path / "data", rows, "--pairs", 200)
    figures = dict(re.findall(r"(\w+): mAP (\d+\.\d\d)%", printed))
    how = ("--descriptions", rows, "--binary", "--max-pairs", 200, "--json")
    found = cairn("evaluate", "hpatches", tmp_path / "data", *how).json
    assert {name: f"{100 * found[name]['mAP']:.2f}" for name in figures} == figures
    assert set(figures) == {"verification", "matching", "retrieval"} and float(figures["matching"]) > 95
