"""Google Landmarks v2 (Weyand, Araujo, Cao, Sim, CVPR 2020): its ground truths and predictions, tables as published.
``retrieval_solution_v2.1.csv`` has ``id``, ``images`` (separated by spaces; None: ignored) and ``Usage`` (Public or
Private), ``recognition_solution_v2.1.csv`` ``landmarks`` for ``images``. Predictions are in Kaggle's format:
``id,images``, best first, and ``id,landmarks``, one landmark and its score, or nothing.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from index.errors import CairnError
from index.text import shown
from learning.measures.precision import global_average_precision

DEPTH = 100
"""Photos of a ranking that count."""

USAGES = ("public", "private")
"""Parts of the test set, each measured separately."""

_LONGEST = 1 << 24  # characters of a cell


@dataclass(frozen=True)
class RetrievalQuery:
    """A photo of the test set, and its positives in the index."""

    photo: str
    positives: frozenset[str]
    usage: str  # one of USAGES


def is_retrieval(path: Path) -> bool:
    """Whether a table is a ground truth, or predictions, of retrieval, by its first line."""
    return {"id", "images"} <= {*_header(path)}


def read_retrieval(path: Path) -> list[RetrievalQuery]:
    """Read a ground truth of retrieval; ignored photos are left out."""
    queries = []
    for line, photo, cells, usage in _rows(path, "images"):
        if usage in USAGES and [one.casefold() for one in cells] not in ([], ["none"]):
            if photo in cells:
                raise CairnError(f"{path}, line {line}: the photo {shown(photo)} is to find itself.")
            queries.append(RetrievalQuery(photo, frozenset(cells), usage))
    if not queries:
        raise CairnError(f"No photo of {path} has another one to find.")
    return queries


def read_retrieved(path: Path) -> dict[str, list[str]]:
    """Read predictions of retrieval: photos by query, best first."""
    return {photo: cells for _, photo, cells, _ in _rows(path, "images")}


@dataclass(frozen=True)
class Recognition:
    """Scores of landmark recognition."""

    gap: float  # global average precision, over all photos of the part
    landmarks_alone: float  # the same without photos of no landmark
    # number of photos of the part, with a landmark, and with a prediction
    photos: int
    with_landmark: int
    predicted: int


def score_recognition(solution: Path, predictions: Path) -> dict[str, Recognition]:
    """Score predicted landmarks, by part of the test set."""
    known = {
        photo: (frozenset(cells), usage) for _, photo, cells, usage in _rows(solution, "landmarks") if usage in USAGES
    }
    predicted: dict[str, tuple[str, float]] = {}
    for line, photo, cells, _ in _rows(predictions, "landmarks"):
        if not cells:
            continue
        if photo not in known:
            raise CairnError(f"{predictions}, line {line}: {solution} has no photo {shown(photo)}.")
        predicted[photo] = _prediction(predictions, line, cells)
    scored = {}
    for usage in USAGES:
        truth = {photo: landmarks for photo, (landmarks, of) in known.items() if of == usage}
        right = {photo: landmarks for photo, landmarks in truth.items() if landmarks}
        if not right:
            continue
        ordered = sorted(
            (photo for photo in predicted if photo in truth), key=lambda photo: (-predicted[photo][1], photo)
        )
        scored[usage] = Recognition(
            global_average_precision([predicted[photo][0] in truth[photo] for photo in ordered], len(right)),
            global_average_precision([predicted[one][0] in right[one] for one in ordered if one in right], len(right)),
            len(truth),
            len(right),
            len(ordered),
        )
    if not scored:
        raise CairnError(f"No photo of {solution} shows a landmark.")
    return scored


def _prediction(path: Path, line: int, cells: Sequence[str]) -> tuple[str, float]:
    try:
        landmark, score = cells[0], float(cells[1])
        if len(cells) != 2 or not math.isfinite(score):
            raise ValueError(cells)
    except (ValueError, IndexError):
        raise CairnError(
            f"{path}, line {line}: a prediction is one landmark and its score, and not {shown(' '.join(cells))}."
        ) from None
    return landmark, score


def _rows(path: Path, column: str) -> Iterator[tuple[int, str, list[str], str]]:
    """Line number, photo, value and usage in lower case; "" without such a column."""
    photos = set()
    names: list[str] | None = None
    for line, cells in _lines(path):
        if names is None:
            names = [cell.strip().casefold() for cell in cells]
            if names.count("id") != 1 or names.count(column) != 1:
                raise CairnError(f"{path} is no table of Google Landmarks: it has no columns id and {column}.")
            continue
        if len(cells) != len(names):
            raise CairnError(f"{path}, line {line}: it has {len(cells)} cells where the header has {len(names)}.")
        row = dict(zip(names, cells, strict=True))
        photo = row["id"].strip()
        if not photo or photo in photos:
            wrong = f"the photo {shown(photo)} is there twice" if photo else "the photo is missing"
            raise CairnError(f"{path}, line {line}: {wrong}.")
        photos.add(photo)
        yield line, photo, row[column].split(), row.get("usage", "").strip().casefold()
    if names is None:
        raise CairnError(f"{path} is empty.")


def _header(path: Path) -> list[str]:
    return [cell.strip().casefold() for cell in next((cells for _, cells in _lines(path)), [])]


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The non-blank lines of a table; only commas separate cells, as spaces separate items within them."""
    before = csv.field_size_limit(_LONGEST)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for cells in reader:
                if any(map(str.strip, cells)):
                    yield reader.line_num, cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CairnError(f"{path} cannot be read as a table: {error}.") from error
    finally:
        csv.field_size_limit(before)
