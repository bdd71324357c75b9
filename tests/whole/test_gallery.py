"""The gallery of the documentation: each example uses what everybody can, tells what it shows, and draws it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cairn import PUBLIC
from tests.support.paths import ROOT

GALLERY = ROOT / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))
SUBJECTS = (
    "regions",
    "patches",
    "vocabulary",
    "box_search",
    "verification",
    "query_expansion",
    "learnt_pooling",
    "roc",
    "learnt_similarity",
    "groups",
    "own_features",
    "precision_recall",
    "turned_queries",
    "dimensions",
)
"""What has an example; others may come."""

_ALLOWED = {"cairn", "matplotlib", "numpy", "sample_photos", "skimage", *sys.stdlib_module_names}
_ALSO = {"plot_own_features": {"cv2"}}  # another program's features need another program
_RUN = """
import runpy, sys, warnings
import matplotlib.pyplot as plt
warnings.simplefilter("error")
runpy.run_path(sys.argv[1], run_name="__main__")
figures = [plt.figure(number) for number in plt.get_fignums()]
drawn = sum(len(axes.images) + len(axes.lines) + len(axes.collections) for one in figures for axes in one.axes)
print("figures", len(figures), "drawn", drawn)
"""


def test_every_subject_has_an_example() -> None:
    assert {f"plot_{subject}" for subject in SUBJECTS} <= {path.stem for path in EXAMPLES}
    assert (GALLERY / "GALLERY_HEADER.rst").read_text(encoding="utf-8").startswith("Gallery\n=======\n")


@pytest.mark.parametrize("path", [*EXAMPLES, GALLERY / "sample_photos.py"], ids=lambda path: path.stem)
def test_an_example_imports_what_its_reader_has(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cairn":
            assert node.attr in PUBLIC, f"cairn.{node.attr} is not public"
    assert imported - _ALLOWED <= _ALSO.get(path.stem, set())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_prose_and_a_picture(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    title, underline, empty, introduction = str(ast.get_docstring(ast.parse(text))).split("\n", 3)
    assert underline == "=" * len(title) and not empty
    assert len(re.findall(r"[.?](?:\s|$)", introduction)) >= 2
    cells = re.split(r"^# %%.*\n", text, flags=re.MULTILINE)[1:]
    assert len(cells) >= 2 and all(cell.startswith("# ") for cell in cells)
    assert len(text.splitlines()) <= 120
    assert "plt.subplots(" in text and "plt.show()" in text


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_draws_and_leaves_nothing_behind(path: Path, tmp_path: Path) -> None:
    elsewhere, scratch = tmp_path / "elsewhere", tmp_path / "scratch"
    for folder in (elsewhere, scratch, tmp_path / "home"):
        folder.mkdir()
    environment = {
        **os.environ,
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": str(tmp_path / "home"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(GALLERY)]),
        "TMPDIR": str(scratch),
        "OMP_NUM_THREADS": "1",
    }
    run = subprocess.run(
        [sys.executable, "-c", _RUN, path], cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    reported = re.search(r"figures (\d+) drawn (\d+)", run.stdout)
    assert reported and int(reported[1]) >= 1 and int(reported[2]) >= 2
    assert not [*elsewhere.iterdir(), *scratch.iterdir()]
