"""Files of rankings, curves and descriptions of patches by other programs."""

import io
import tempfile
from pathlib import Path

import numpy as np

from eval.descriptions import read_descriptions
from eval.rankings.curves import Curves, read_curves, write_curves
from eval.rankings.files import Rankings, read_rankings, write_rankings
from eval.rankings.ground_truth import GroundTruth, JudgedQuery
from eval.rankings.scoring import score_rankings
from tests.support.fuzzing import Sample

ROWS = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32)
TRUTH = GroundTruth({"": [JudgedQuery("q", "a", (0, 0, 9, 9), frozenset("ab"), frozenset("c"))]})


def ranking_samples() -> list[Sample]:
    """A ranking in each form, and a table of curves."""
    ranked = Rankings({"q": ["b", "c", "x/a.jpg", 'odd, "one"']}, "", distractors={"x/a.jpg"})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rankings(folder / "ranking.csv", ranked)
        write_curves(folder / "curves.csv", {"": Curves({"q": np.linspace(1, 0, 101)})})
        tables: list[Sample] = [{path.name: path.read_bytes()} for path in sorted(folder.iterdir())]
    return [*tables, {"ranking.json": b'{"q": ["b", "a"]}'}, {"ranking.txt": b"b\nimg/a.jpg\n\nx\n"}]


def read_ranking(folder: Path) -> None:
    """Read a ranking, and score it."""
    if (folder / "curves.csv").exists():
        for curves in read_curves(folder / "curves.csv").values():
            assert np.isfinite(curves.mean).all()
        return
    for path in folder.glob("ranking.*"):
        read = read_rankings(path)
        if path.suffix == ".txt":
            read.photos = {"q": read.photos["ranking"]}
        assert 0 <= score_rankings(read, TRUTH).mean("") <= 1


def description_samples() -> list[Sample]:
    """Rows in each form."""
    npy, npz, text = io.BytesIO(), io.BytesIO(), io.StringIO()
    np.save(npy, ROWS)
    np.savez(npz, descriptions=ROWS, other=ROWS)
    np.savetxt(text, ROWS, "%.5g", delimiter=",")
    return [{"rows.npy": npy.getvalue()}, {"rows.npz": npz.getvalue()}, {"rows.csv": text.getvalue().encode()}]


def read_description(folder: Path) -> None:
    """Read rows, and measure some of them."""
    for path in folder.glob("rows.*"):
        found = read_descriptions(path)
        numbers = np.arange(len(found.rows))
        assert np.isfinite(found.distances(numbers, numbers[::-1])).all()
