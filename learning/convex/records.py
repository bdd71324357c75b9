"""Records of all models tried, for model selection and for resuming a stopped run."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from index.arrays import load_array, load_json, save_array, save_json
from index.errors import CairnError

TABLE = "records.json"
"""Their file in the folder of a run."""

_STAGES = ("pooling", "projection", "whitening")
_KEY = re.compile(r"[0-9a-f]{64}")
_MOST_REFITS = 1000


@dataclass(frozen=True)
class Record:
    """One model."""

    stage: str  # pooling or projection
    key: str  # fingerprint of everything it depends on
    mu: float  # μ₁ or μ*, in the units of the stage
    gamma: float
    dim: int  # dimensions of the descriptor
    rings: int  # pooling rings of the descriptor; 0: none
    fpr95: float  # on the validation pairs
    objective: float  # over all training pairs
    refits: int  # see `ring_selection.Selection`
    seconds: float  # of learning

    @property
    def merit(self) -> tuple[float, int, int]:
        """Larger is better: less error, then fewer dimensions, then a fixed order."""
        return -self.fpr95, -self.dim, -int(self.key, 16)


class RecordFields(Protocol):
    """Common fields of all kinds of records."""

    @property
    def stage(self) -> str:
        """Its stage."""

    @property
    def key(self) -> str:
        """Fingerprint of everything it depends on."""

    @property
    def refits(self) -> int:
        """Number of times that rings were dropped."""

    @property
    def dim(self) -> int:
        """Dimensions of the descriptor."""

    @property
    def merit(self) -> tuple[float, int, int]:
        """Model selection prefers larger values."""


Kind = TypeVar("Kind", bound=RecordFields)


class ModelRecords(Generic[Kind]):
    """The models tried so far, in a folder."""

    def __init__(self, folder: Path, kind: type[Kind]) -> None:
        self.folder = folder
        self.kind = kind
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / TABLE
        self.all = self._read()

    def _read(self) -> list[Kind]:
        if not self._file.is_file():
            return []
        try:
            records = [self.kind(**entry) for entry in load_json(self._file)]
            if not all(_fits(record) for record in records):
                raise ValueError("a field is of the wrong type, or cannot be")
        except (CairnError, TypeError, ValueError):
            raise CairnError(
                "{file} is damaged, or of another kind of source: give another folder ({--work}), or delete {folder} "
                "to begin again.",
                file=self._file,
                folder=self.folder,
            ) from None
        return records

    def of(self, key: str) -> list[Kind]:
        """Records of the models of a key."""
        return [record for record in self.all if record.key == key]

    def add(self, models: list[tuple[Kind, NDArray[np.float64]]]) -> None:
        """Store models with their weights or projections, all or nothing."""
        for record, parameters in models:
            save_array(self._path(record), parameters)
        # Read again: another run may have added records meanwhile.
        self.all = self._read() + [record for record, _ in models]
        save_json(self._file, self.all)

    def parameters(self, record: Kind) -> NDArray[np.float64]:
        """Weights or projection of a model."""
        return load_array(self._path(record))

    def _path(self, record: Kind) -> Path:
        return self.folder / f"{record.stage}-{record.key[:16]}-{record.refits}.npy"


def _fits(record: Any) -> bool:
    """Whether all fields have their declared types, and those used in file names are valid names."""
    kinds: dict[Any, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "list": (list,)}
    if not all(
        type(getattr(record, item.name)) in kinds[getattr(item.type, "__name__", str(item.type))]
        for item in fields(record)
    ):
        return False
    numbers = (value for value in vars(record).values() if isinstance(value, int | float))
    named = record.stage in _STAGES and _KEY.fullmatch(record.key) and 0 <= record.refits < _MOST_REFITS
    return bool(named) and all(abs(number) < float("inf") for number in numbers)  # NaN fails the comparison too


def best(records: list[Kind], limit: int) -> Kind | None:
    """Choose the record of most merit with at most `limit` dimensions; None if there is no such record."""
    fitting = [record for record in records if 0 < record.dim <= limit]
    return max(fitting, key=lambda record: record.merit, default=None)
