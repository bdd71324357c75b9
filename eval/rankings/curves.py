"""Precision-recall curves: of one ranking, interpolated, and the mean over queries; and tables of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.rankings.files import check_table, read_rankings
from eval.rankings.ground_truth import read_truth_of_rankings
from eval.rankings.scoring import ScoredQuery, score_rankings
from index.arrays import save_rows
from index.errors import CairnError
from index.text import shown
from retrieval.catalogue.tables.reading import open_csv

RECALLS = np.linspace(0, 1, 101)
"""Recalls for interpolated precision."""

HEADER = ("protocol", "query", "recall", "precision")
MEAN = "(mean)"
"""Name in place of a query in the rows of the mean curve."""


@dataclass(frozen=True)
class Curves:
    """Interpolated precision at `RECALLS` of the queries of one protocol."""

    queries: dict[str, NDArray[np.float64]]  # by the query's name, (101,)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean over the queries, shape (101,)."""
        mean: NDArray[np.float64] = np.stack(list(self.queries.values())).mean(axis=0)
        return mean


def precision_recall(hits: NDArray[np.bool_], positives: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Recall and precision (M,) after each photo of a ranking without junk, of `hits` (M,) and 1 positive or more."""
    hit_counts = np.cumsum(hits)
    return hit_counts / positives, hit_counts / np.arange(1, len(hits) + 1)


def interpolated(hits: NDArray[np.bool_], positives: int) -> NDArray[np.float64]:
    """Interpolated precision (101,) at `RECALLS`: the largest at that recall or beyond, 0 beyond the end of the ranking
    (Manning, Raghavan, Schütze, section 8.4). Its mean is not the average precision of Oxford5K, which does not
    interpolate.
    """
    places = np.flatnonzero(hits)
    precision = np.arange(1, len(places) + 1) / (places + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    # Number of positives for a recall, computed so that rounding of 0.29 * 100 does not add one.
    wanted = np.maximum(np.ceil(np.round(RECALLS * positives, 9)).astype(np.int64), 1)
    curve = np.zeros(len(RECALLS))
    reached = wanted <= len(places)
    curve[reached] = best[wanted[reached] - 1]
    return curve


def curves_of(scores: Sequence[ScoredQuery]) -> Curves:
    """Return the curves of scored queries; 0 everywhere without a ranking."""
    return Curves({score.query.name: interpolated(score.hits, len(score.query.positives)) for score in scores})


def mean_curves(path: Path, ground_truth: Path | None) -> list[tuple[str, NDArray[np.float64], str]]:
    """Name (empty if it is the only one), mean curve (101,) and mAP (empty if unknown) of each protocol of a file of
    rankings, scored by a ground truth, or of a table written by `write_curves`.
    """
    if path.is_file() and path.suffix.lower() == ".csv" and is_table_of_curves(path):
        known = read_curves(path)
        return [(name if len(known) > 1 else "", curves.mean, "") for name, curves in known.items()]
    if ground_truth is None:
        raise CairnError(
            "{path} is no table of precision and recall: name the ground truth of its rankings by {--gt}.", path=path
        )
    report = score_rankings(read_rankings(path), read_truth_of_rankings(ground_truth))
    return [
        (name if len(report.protocols) > 1 else "", curves_of(scores).mean, f"mAP {report.mean(name):.4f}")
        for name, scores in report.protocols.items()
    ]


def write_curves(path: Path, protocols: Mapping[str, Curves]) -> None:
    """Write a table of protocol, query, recall and precision: the mean first, then each query."""
    check_table(path)
    save_rows(path, _rows(protocols))


def _rows(protocols: Mapping[str, Curves]) -> Iterator[tuple[str, ...]]:
    yield HEADER
    for protocol, curves in protocols.items():
        for query, curve in {MEAN: curves.mean, **curves.queries}.items():
            for recall, precision in zip(RECALLS.tolist(), curve.tolist(), strict=True):
                yield protocol, query, f"{recall:.2f}", f"{precision:.9f}"


def is_table_of_curves(path: Path) -> bool:
    """Whether a file is a table of `write_curves`, by its first line."""
    first = next((cells for _, cells in open_csv(path).records()), [])
    return tuple(cell.strip() for cell in first) == HEADER


def read_curves(path: Path) -> dict[str, Curves]:
    """Read a table written by `write_curves`."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for line, cells in open_csv(path).records():
        if line == 1 or not any(cells):
            continue
        try:
            protocol, query, recall, precision = cells
            point = float(recall), float(precision)
        except ValueError:
            raise CairnError(
                f"{path}, line {line}: expected {', '.join(HEADER)}, found {shown(','.join(cells))}."
            ) from None
        if query != MEAN:
            found.setdefault(protocol, {}).setdefault(query, []).append(point)
    protocols = {}
    for protocol, queries in found.items():
        curves = {}
        for query, points in queries.items():
            table = np.array(sorted(points))
            if len(table) != len(RECALLS) or not np.allclose(table[:, 0], RECALLS) or not np.isfinite(table).all():
                raise CairnError(f"{path} has no precision at {len(RECALLS)} recalls for the query {shown(query)}.")
            curves[query] = table[:, 1]
        protocols[protocol] = Curves(curves)
    if not protocols:
        raise CairnError(
            "{path} has no precision-recall curve: {cairn evaluate} ranking {--pr} writes some.", path=path
        )
    return protocols
