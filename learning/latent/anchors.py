"""Training reference features, with the candidates of each: P(x), and the nearest of N(x)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from learning.latent.alternation import GroupedRows
from learning.mining.matches import MinedMatches


@dataclass(frozen=True)
class Anchors:
    """Features x, their positives and the negatives in use, as patches of the mined file."""

    features: NDArray[np.int64]  # (F,) int64: reference features of the file, rising
    references: NDArray[np.int32]  # (F,) int32: patch of each
    positives: GroupedRows
    positive_patches: NDArray[np.int32]  # (M,) int32
    negatives: GroupedRows
    negative_patches: NDArray[np.int32]  # (L,) int32: rising for each feature

    @classmethod
    def of(cls, matches: MinedMatches, features: NDArray[np.int64], hardest: NDArray[np.int32]) -> "Anchors":
        """Make them of features and negatives (F, k), padded with -1; features without any are left out."""
        some = (hardest >= 0).any(axis=1)
        features, hardest = features[some], np.sort(hardest[some], axis=1)
        new = hardest >= 0
        new[:, 1:] &= hardest[:, 1:] != hardest[:, :-1]
        lists = [matches.positives(x) for x in features.tolist()]
        return cls(
            features,
            matches.reference[features],
            _rows(np.array([len(row) for row in lists], np.int64)),
            np.concatenate([np.zeros(0, np.int32), *lists]),
            _rows(new.sum(axis=1)),
            hardest[new],
        )

    def __len__(self) -> int:
        return len(self.features)

    def with_negatives(self, matches: MinedMatches, more: NDArray[np.int32]) -> "Anchors":
        """Add negatives (F, k), without duplicates."""
        table = np.full((len(self), int(np.diff(self.negatives.starts).max(initial=0))), -1, np.int32)
        lengths = np.diff(self.negatives.starts)
        table[np.arange(table.shape[1]) < lengths[:, None]] = self.negative_patches
        return Anchors.of(matches, self.features, np.concatenate([table, more], axis=1))

    def patches(self) -> NDArray[np.int32]:
        """All patches in use, ascending."""
        return np.unique(np.concatenate([self.references, self.positive_patches, self.negative_patches]))

    @property
    def candidates(
        self,
    ) -> tuple[tuple[NDArray[np.int32], NDArray[np.int32]], tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """For positives and for negatives: the patch of each row's feature, and the patch of the candidate."""
        positives, negatives = (
            np.repeat(self.references, np.diff(rows.starts)) for rows in (self.positives, self.negatives)
        )
        return (positives, self.positive_patches), (negatives, self.negative_patches)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of features and candidates, as numbers in the file."""
        negatives: dict[str, NDArray[np.integer]] = {"starts": self.negatives.starts}
        negatives["negatives"] = self.negative_patches
        return fingerprint({"features": self.features, **negatives}, {})


def draw_features(
    matches: MinedMatches, pairs: NDArray[np.int64], number: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw reference features (0: all) of image pairs, ascending, evenly over reference photos and pairs of a photo.

    Otherwise the weight of a place would grow with the square of its photos.
    """
    sizes = np.array([len(matches.of_pair(int(pair))) for pair in pairs], np.int64)
    photos, of_photo = np.unique(matches.pairs[pairs, 0], return_inverse=True)
    shares = _even(np.bincount(of_photo, sizes, len(photos)).astype(np.int64), number or int(sizes.sum()))
    drawn = [np.zeros(0, np.int64)]
    for photo, share in enumerate(shares.tolist()):
        members = np.flatnonzero(of_photo == photo)
        for pair, count in zip(pairs[members].tolist(), _even(sizes[members], share).tolist(), strict=True):
            drawn.append(rng.permutation(np.array(matches.of_pair(int(pair)), np.int64))[:count])
    return np.sort(np.concatenate(drawn))


def _even(sizes: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """Divide a number among parts of limited sizes as evenly as possible; (N,) int64."""
    left = min(wanted, int(sizes.sum()))
    shares = np.zeros(len(sizes), np.int64)
    # From the smallest on, each gets an equal share of the rest, or its size.
    for place, thing in enumerate(np.argsort(sizes, kind="stable").tolist()):
        shares[thing] = min(int(sizes[thing]), left // (len(sizes) - place))
        left -= int(shares[thing])
    return shares


def _rows(lengths: NDArray[np.int64]) -> GroupedRows:
    return GroupedRows(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
