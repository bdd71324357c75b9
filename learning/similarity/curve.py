"""The iterations of learning a similarity as a table, the data of Fig. 6 of Yan13."""

from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

from index.arrays import save_rows
from index.errors import CairnError
from learning.similarity.learning import Iteration


def check_curve(path: Path) -> None:
    """Raise CairnError if no table can be written to a path; called before any work."""
    if path.suffix != ".csv":
        raise CairnError(f"{path} must end with .csv: choose {path.with_suffix('.csv')}.")
    if path.is_dir() or not path.parent.is_dir():
        raise CairnError(f"No table can be written to {path}: its folder is missing, or it is one.")


def write_curve(path: Path, history: Sequence[Iteration]) -> None:
    """Write a line per iteration, tf-idf first; unknown values are empty."""
    save_rows(path, [["iteration", *(field.name for field in fields(Iteration)[1:])], *map(astuple, history)])
