"""Records of every model that was tried: what model selection chooses from, and what a stopped run goes on from."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from index.arrays import load_array, load_json, save_array, save_json
from index.errors import CairnError


@dataclass(frozen=True)
class Record:
    """One model."""

    stage: str  # pooling or projection
    key: str  # fingerprint of all that it depends on
    mu: float  # μ₁ or μ*, in the units of the stage
    gamma: float
    dim: int  # dimensions of the descriptor
    rings: int  # pooling rings of the descriptor; 0: none
    fpr95: float  # on the validation pairs
    objective: float  # over all training pairs
    refits: int  # see `pooling.Selection`
    seconds: float  # that it took


class Records:
    """The models tried so far, in a folder.

    Parameters
    ----------
    folder : Path
        Made where it is missing.

    Raises
    ------
    CairnError
        What is there is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "records.json"
        self.all = self._read()

    def _read(self) -> list[Record]:
        if not self._file.is_file():
            return []
        try:
            records = [Record(**entry) for entry in load_json(self._file)]
            if not all(_fits(record) for record in records):
                raise TypeError("a field is of the wrong type")
        except (CairnError, TypeError):
            raise CairnError(f"{self._file} is damaged: delete {self.folder} to begin again.") from None
        return records

    def of(self, key: str) -> list[Record]:
        """Records of the models that a key stands for."""
        return [record for record in self.all if record.key == key]

    def add(self, found: list[tuple[Record, np.ndarray]]) -> None:
        """Keep models, with their weights or projections, all of them or none."""
        for record, parameters in found:
            save_array(self._path(record), parameters)
        # Read again: another run may have added to it meanwhile.
        self.all = self._read() + [record for record, _ in found]
        save_json(self._file, self.all)

    def parameters(self, record: Record) -> np.ndarray:
        """Weights or projection of a model."""
        return load_array(self._path(record))

    def _path(self, record: Record) -> Path:
        return self.folder / f"{record.stage}-{record.key[:16]}-{record.refits}.npy"


def _fits(record: Record) -> bool:
    """Whether all fields are of the types they are declared as."""
    kinds = {"str": (str,), "int": (int,), "float": (int, float)}
    return all(
        isinstance(getattr(record, item.name), kinds[str(getattr(item.type, "__name__", item.type))])
        for item in fields(record)
    )


def best(records: list[Record], limit: int) -> Record | None:
    """The record of least error among those with at most so many dimensions; of equal ones, that with fewest."""
    fitting = [record for record in records if 0 < record.dim <= limit]
    return min(fitting, key=lambda record: (record.fpr95, record.dim, record.key), default=None)
