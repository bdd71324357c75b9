"""Whether a learnt descriptor finds more than another in held-out scenes, in plain words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from learning.judge.retrieval import ENGINES
from learning.judge.scenes import BoxQuery
from learning.measures.differences import beyond_chance, mean_and_error
from retrieval.search.query import Box

OUTCOMES = ("better", "worse", "same", "cannot say")

_FEWEST = 2  # least scenes for a verdict
_HARMLESS = 0.005  # loss of a mean that counts as no worse: half a point
_ALIKE = 1e-9  # tolerance of equal average precisions
_SOLVED = 0.98  # mAP that leaves almost nothing to gain
_TITLES = dict(zip(ENGINES, ("by words", "verified"), strict=True))


@dataclass(frozen=True)
class GainedPhoto:
    """A photo found by a verified search with the learnt descriptor, but not with the other."""

    photo: int  # number of the query photo, in its source collection
    box: Box  # pixels of the upright original
    found: int  # number of the photo found


@dataclass(frozen=True)
class RetrievalVerdict:
    """Results of searches with a learnt descriptor and with another."""

    name: str  # of the latter
    photos: int  # in the database
    scenes: int  # formed from them by strict links
    queries: int  # boxes in photos of held-out scenes
    # (S, E) float64: mean average precision of the scene's queries, by held-out scene and by engine of
    # `retrieval.ENGINES`
    learnt: NDArray[np.float64]
    other: NDArray[np.float64]
    # by engine: queries that the learnt descriptor answers better, and worse; empty if not counted
    won: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    gained: tuple[GainedPhoto, ...] = ()  # some photos found only with the learnt descriptor

    @staticmethod
    def of(
        name: str,
        photos: int,
        scenes: int,
        queries: Sequence[BoxQuery],
        learnt: NDArray[np.float64],
        other: NDArray[np.float64],
        *,
        gained: Sequence[GainedPhoto] = (),
    ) -> "RetrievalVerdict":
        """Average the precisions (Q, E) of queries over each scene, so that scenes weigh equally."""
        numbers, places = np.unique([query.scene for query in queries], return_inverse=True)
        of_scene = [np.flatnonzero(places == place) for place in range(len(numbers))]
        means = [
            np.array([rows[which].mean(axis=0) for which in of_scene]).reshape(len(numbers), len(ENGINES))
            for rows in (learnt, other)
        ]
        gains = learnt - other
        won, lost = ((sign * gains > _ALIKE).sum(axis=0).tolist() for sign in (1, -1))
        totals = tuple(won), tuple(lost), tuple(gained)
        return RetrievalVerdict(name, photos, scenes, len(queries), means[0], means[1], *totals)

    @property
    def held_out(self) -> int:
        """Number of the held-out scenes."""
        return len(self.learnt)

    def difference(self, engine: str) -> tuple[float, float]:
        """Mean gain in mAP over held-out scenes, and its standard error."""
        return mean_and_error(self._differences(engine))

    def better(self, engine: str) -> int:
        """1 if the learnt descriptor finds significantly more by an engine, -1 if less, else 0."""
        return beyond_chance(self._differences(engine)) if self.held_out >= _FEWEST else 0

    def _differences(self, engine: str) -> NDArray[np.float64]:
        place = ENGINES.index(engine)
        return np.asarray(self.learnt[:, place] - self.other[:, place])

    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`.

        Better means significantly more by one engine, and not significantly or half a point less verified in the mean.
        """
        if self.held_out < _FEWEST:
            return "cannot say"
        words, verified = (self.better(engine) for engine in ENGINES)
        if verified < 0 or (words < 0 and verified == 0):
            return "worse"
        harmless = self.difference(ENGINES[1])[0] >= -_HARMLESS
        return "better" if harmless and max(words, verified) > 0 else "same"

    @property
    def sentence(self) -> str:
        """Advice for the user."""
        name = self.name
        scenes = f"{self.held_out} scenes that it was not learnt from"
        if self.outcome != "cannot say":
            return {
                "better": f"In searches, the learnt descriptor finds more than {name} of {scenes}: index with it.",
                "worse": f"In searches, the learnt descriptor finds less than {name} of {scenes}: stay with {name}.",
                "same": f"In searches, the learnt descriptor shows no gain over {name} on {scenes}: stay with {name}.",
            }[self.outcome]
        if not self.scenes:
            return (
                f"No two of {self.photos:,} photos surely show the same, so one cannot say whether searches find more "
                f"with the learnt descriptor than with {name}: stay with {name}, or add photos that overlap."
            )
        left = "none" if not self.held_out else "only one"
        return (
            f"Of {_scenes(self.scenes)} that surely overlap, {left} is free of photos that the descriptor was learnt "
            f"from, so one cannot say whether searches find more with it than with {name}: stay with {name}, or add "
            "photos of other things."
        )

    @property
    def details(self) -> list[str]:
        """Its figures, in sentences."""
        if not self.held_out:
            return []
        where = f"{_scenes(self.held_out)} not learnt from, among {self.photos:,} photos"
        lines = [f"Searched for: {self.queries:,} boxes in photos of {where}."]
        for place, engine in enumerate(ENGINES):
            mean, error = self.difference(engine)
            margin = f" ± {100 * error:.1f}" if np.isfinite(error) else ""
            one, two = 100 * self.learnt[:, place].mean(), 100 * self.other[:, place].mean()
            lines.append(
                f"mAP {_TITLES[engine]} {one:.1f}, with {self.name} {two:.1f} (difference {100 * mean:+.1f}{margin} "
                "points)."
            )
        if self.other.mean() > _SOLVED:
            lines.append(f"{self.name} finds nearly all of them, so that hardly any gain could show.")
        return lines

    def as_json(self) -> dict[str, object]:
        """Return the figures, as shares; None if unknown."""
        report: dict[str, Any] = {
            "outcome": self.outcome,
            "compared_with": self.name,
            "photos": self.photos,
            "scenes": self.scenes,
            "held_out_scenes": self.held_out,
            "queries": self.queries,
        }
        for place, engine in enumerate(ENGINES):
            mean, error = self.difference(engine) if self.held_out else (np.inf, np.inf)
            report[engine] = {
                "learnt": _rounded(self.learnt[:, place].mean() if self.held_out else np.inf),
                self.name: _rounded(self.other[:, place].mean() if self.held_out else np.inf),
                "difference": _rounded(mean),
                "standard_error": _rounded(error),
            }
            if self.won and self.held_out:
                report[engine] |= {"won": self.won[place], "lost": self.lost[place]}
        if self.gained:
            report["gained"] = [{**vars(one), "box": [round(side, 1) for side in one.box]} for one in self.gained]
        return report


def gains(
    queries: Sequence[BoxQuery],
    learnt: Sequence[frozenset[int]],
    other: Sequence[frozenset[int]],
    numbers: Mapping[int, int],
    most: int = 12,
) -> list[GainedPhoto]:
    """Choose some photos found only with the learnt descriptor, from as many scenes as possible."""
    photos: dict[tuple[int, int], GainedPhoto] = {}  # by rank within the scene, and by scene
    counts: Counter[int] = Counter()
    pairs = set[frozenset[int]]()  # each pair of photos is shown once
    for query, with_learnt, with_other in zip(queries, learnt, other, strict=True):
        for number in sorted(with_learnt - with_other):
            pair = frozenset((query.photo, number))
            if pair not in pairs and query.photo in numbers and number in numbers:
                pairs.add(pair)
                place = (counts[query.scene], query.scene)
                photos[place] = GainedPhoto(numbers[query.photo], query.box, numbers[number])
                counts[query.scene] += 1
    return [photos[place] for place in sorted(photos)][:most]


def _scenes(count: int) -> str:
    return "one scene" if count == 1 else f"{count:,} scenes"


def _rounded(share: float) -> float | None:
    return round(float(share), 6) if np.isfinite(share) else None
