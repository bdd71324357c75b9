"""The figures of the panel: by kind of photo, each the mean over scenes with its standard error."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eval.panel.kinds import KINDS
from eval.panel.measuring import QueryOutcome
from learning.measures.differences import mean_and_error
from retrieval.search.probability import FOUND, LIKELY

MEAN = "mean of kinds"


@dataclass(frozen=True)
class Figure:
    """A mean over scenes, and its standard error."""

    mean: float
    error: float
    scenes: int

    @staticmethod
    def of(values: Sequence[float]) -> "Figure":
        """Take the values of scenes."""
        mean, error = mean_and_error(np.array(values))
        return Figure(mean, error if np.isfinite(error) else np.nan, len(values))


@dataclass(frozen=True)
class KindFigures:
    """Figures of one kind of photos."""

    queries: int
    score: Figure  # average precision
    shown: Figure  # share of the positives called found or likely
    # right and wrong photos of this level
    found: tuple[int, int]
    likely: tuple[int, int]
    turned: float  # share of the queries that were turned
    seconds: tuple[float, float]  # mean and median processor time of a query


def scores_of(outcomes: Mapping[str, QueryOutcome]) -> dict[str, dict[str, float]]:
    """Mean average precision by kind and scene."""
    return _by_scene(outcomes, lambda one: one.score)


def summarise(outcomes: Mapping[str, QueryOutcome]) -> dict[str, KindFigures]:
    """Return the figures of each kind with queries, in the order of `KINDS`."""
    scores, shares = scores_of(outcomes), _by_scene(outcomes, _shown)
    kinds = {}
    for kind in scores:
        some = [one for one in outcomes.values() if one.kind == kind]
        photos = [(_is_found(photo), photo[0] >= LIKELY, photo[2]) for one in some for photo in one.photos]
        sure = [right for certain, _, right in photos if certain]
        likely = [right for certain, probable, right in photos if probable and not certain]
        kinds[kind] = KindFigures(
            len(some),
            Figure.of(list(scores[kind].values())),
            Figure.of(list(shares[kind].values())),
            (sum(sure), len(sure) - sum(sure)),
            (sum(likely), len(likely) - sum(likely)),
            float(np.mean([one.turned for one in some])),
            mean_and_median([one.seconds for one in some]),
        )
    return kinds


def differences(outcomes: Mapping[str, QueryOutcome], before: Mapping[str, QueryOutcome]) -> dict[str, Figure]:
    """Gain in average precision of each kind over another run, for the scenes of common queries."""
    both = outcomes.keys() & before.keys()
    now = scores_of({name: one for name, one in outcomes.items() if name in both})
    then = scores_of({name: one for name, one in before.items() if name in both})
    return {kind: Figure.of([score - then[kind][scene] for scene, score in now[kind].items()]) for kind in now}


def mean_of(figures: Mapping[str, Figure]) -> Figure:
    """Return the mean over kinds, with equal weights."""
    means, errors = ([getattr(one, name) for one in figures.values()] for name in ("mean", "error"))
    error = float(np.sqrt(np.nansum(np.square(errors)))) / len(errors)
    return Figure(float(np.mean(means)), error, sum(one.scenes for one in figures.values()))


def mean_and_median(values: Sequence[float]) -> tuple[float, float]:
    """Return both."""
    return float(np.mean(values)), float(np.median(values))


def _by_scene(
    outcomes: Mapping[str, QueryOutcome], value: Callable[[QueryOutcome], float]
) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, list[float]]] = {kind: defaultdict(list) for kind in KINDS}
    for one in outcomes.values():
        values[one.kind][one.scene].append(value(one))
    means = {kind: {scene: float(np.mean(some)) for scene, some in scenes.items()} for kind, scenes in values.items()}
    return {kind: scenes for kind, scenes in means.items() if scenes}


def _is_found(photo: tuple[float, int, bool]) -> bool:
    return photo[0] >= FOUND and photo[1] > 0


def _shown(one: QueryOutcome) -> float:
    return sum(right for probability, _, right in one.photos if probability >= LIKELY) / one.positives
