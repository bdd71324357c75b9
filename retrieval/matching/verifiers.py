"""The contract of verifiers, which check the best photos of an engine in its place.

Features of two photos go in, the matches that agree and their map come out.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.extensions import find, refuse_missing
from index.text import one_line, shown
from retrieval.matching.evidence import count_places, false_alarms, weigh
from retrieval.matching.geometries import suited
from retrieval.matching.verification import NOTHING, Verification, VerificationOptions, verify
from retrieval.matching.word_matches import QueryWords
from retrieval.regions.geometry import Frames, ellipses_of_shapes, into_sides, out_of_sides

OWN, WORDS = "own", "words"
"""The engine's own means; and Cairn's verification by words under this contract."""


@dataclass(frozen=True, eq=False)
class VerifierInput:
    """Features of one photo, in pixels of the upright original, the centre of the top-left one at (0, 0)."""

    points: NDArray[np.float32]  # (N, 2) float32: x and y
    # (N, 2, 2) float32: maps from the unit circle to their regions; placeholders if a detector gives only `points`
    frames: NDArray[np.float32]
    words: NDArray[np.int32]  # (N,) int32: their visual words
    descriptors: NDArray[np.float16] | None  # (N, D) float16: None if the verifier does not need them
    shape: tuple[int, int]  # height and width of the photo
    detector: str = ""  # as in the collection's options; features of ``foreign:points`` have only places

    @property
    def regions(self) -> NDArray[np.float32]:
        """The regions as ellipses (N, 5), in the form that `cairn.verify` takes."""
        return ellipses_of_shapes(self.points.astype(np.float64), self.frames.astype(np.float64))

    @property
    def side(self) -> float:
        """Longer side, pixels."""
        return float(max(self.shape))

    @property
    def in_sides(self) -> Frames:
        """The features in units of the longer side, as used in verification."""
        return Frames((self.points + np.float32(0.5)) / np.float32(self.side), self.frames / np.float32(self.side))


@dataclass(frozen=True, eq=False)
class Agreement:
    """Result of a verifier for two photos; the result of `cairn.verify` has the same attributes, and may be used."""

    inliers: NDArray[np.integer]  # (M, 2) int: feature of the query, feature of the photo; each at most once
    # (2, 3) float: affine map of the query's pixels to the photo's; None: not verified
    transform: NDArray[np.floating] | None
    # log odds that both show the same; None: computed from the number of places that agree
    log_odds: float | None = None


class Verifier(Protocol):
    """Interface of an extension of the kind ``verifier``; with ``needs_descriptors = True`` it gets descriptors."""

    def verify(self, query: VerifierInput, photo: VerifierInput) -> Agreement | None:
        """Find the matches of two photos that agree on a map of the plane; None if they show nothing in common."""
        ...


class WordVerifier:
    """The built-in verification by features of equal words, of only two photos: without the rarity of words."""

    def verify(self, query: VerifierInput, photo: VerifierInput) -> Agreement | None:
        """Verify two photos: see `Verifier.verify`."""
        options = suited(VerificationOptions(), query.detector)
        order = np.argsort(photo.words, kind="stable")
        pairs = QueryWords(query.words).match(photo.words[order], options.max_matches)
        pairs = np.stack([pairs[:, 0], order[pairs[:, 1]]], axis=1).astype(np.int32)
        verification = verify(query.in_sides.at(pairs[:, 0]), photo.in_sides.at(pairs[:, 1]), pairs, options)
        if verification.transform is None:
            return None
        matrix = out_of_sides(photo.side) @ np.vstack([verification.transform, [0, 0, 1]]) @ into_sides(query.side)
        return Agreement(verification.matches, matrix[:2], verification.log_odds)


def find_verifier(name: str) -> Verifier:
    """Find a verifier by its name, or an extension also by its place; raises CairnError if it is unknown."""
    if name == WORDS:
        return WordVerifier()
    extension = find("verifier", name)
    if extension is None:
        refuse_missing("verifier", name)
        raise CairnError(
            "There is no verifier {name}: choose {own} or {words}, or install the package that declares it, in the "
            "group cairn.verifiers.",
            name=shown(name),
            own=OWN,
            words=WORDS,
        )
    verifier: Verifier = extension.load()
    return verifier


def verification_of(
    verifier: Verifier, query: VerifierInput, photo: VerifierInput, options: VerificationOptions
) -> Verification:
    """Verify two photos, and check the verifier's result."""
    try:
        agreement: Any = verifier.verify(query, photo)
        if agreement is None or agreement.transform is None or not len(agreement.inliers):
            return NOTHING
        inliers, transform = np.asarray(agreement.inliers), np.asarray(agreement.transform, np.float64)
        log_odds = getattr(agreement, "log_odds", None)
    except CairnError:
        raise
    except Exception as error:  # an extension may raise anything
        reason = shown(one_line(error), 200)
        raise CairnError(
            "The verifier {name} failed: {reason}.", name=type(verifier).__name__, reason=reason
        ) from error
    sizes = len(query.points), len(photo.points)
    if inliers.ndim != 2 or inliers.shape[1] != 2 or inliers.dtype.kind not in "iu" or inliers.min() < 0:
        raise _refused(verifier, f"inliers are (M, 2) numbers of features, and not {inliers.dtype} {inliers.shape}")
    for side in (0, 1):
        if inliers[:, side].max() >= sizes[side] or len(np.unique(inliers[:, side])) < len(inliers):
            raise _refused(verifier, "a match is of a feature that there is not, or that is in another match")
    if transform.shape != (2, 3) or not np.isfinite(transform).all() or np.linalg.det(transform[:, :2]) <= 0:
        raise _refused(verifier, "the map is an affine one (2, 3) that mirrors and flattens nothing")
    if log_odds is None or not np.isfinite(log_odds):
        places = min(count_places(one.in_sides.centres[rows], options.threshold) for one, rows in
                     ((query, inliers[:, 0]), (photo, inliers[:, 1])))  # fmt: skip
        features = min(sizes)
        alarms = false_alarms(places, features, features * np.pi * options.threshold**2 / 2)
        log_odds = weigh(alarms, 1.0, 0.0, options.evidence)
    matrix = into_sides(photo.side) @ np.vstack([transform, [0, 0, 1]]) @ out_of_sides(query.side)
    return Verification(inliers.astype(np.int32), matrix[:2], float(log_odds))


def _refused(verifier: Verifier, reason: str) -> CairnError:
    return CairnError(
        "What the verifier {name} gives cannot be used: {reason}.", name=type(verifier).__name__, reason=reason
    )
