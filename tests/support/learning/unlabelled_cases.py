"""Small overlapping photos, for learning in a second."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from learning.convex.candidates import PoolOptions
from learning.convex.projection import ProjectionOptions
from learning.convex.ring_selection import SelectionOptions
from learning.latent.descriptor import UnlabelledOptions
from learning.mining.matches import MinedMatches
from learning.mining.mining import MiningOptions, mine_matches
from learning.mining.photo_source import PhotoSource
from tests.support.made_once import made_once
from tests.whole.test_learning import VIEWS, view_of

SHOWN = ("astronaut", "chelsea", "coffee", "rocket")
SIDE = 320

QUICK = UnlabelledOptions(
    dim=24,
    max_pooled_dim=64,
    shares=(0.8, 0.5),
    pooling_features=200,
    projection_features=250,
    validation_features=150,
    pooling_negatives=2,
    projection_negatives=3,
    alternations=2,
    pool=PoolOptions(step=5),
    selection=SelectionOptions(mus=(0.3,), gammas=(0.1,), iterations=40, batch=50),
    projection=ProjectionOptions(mus=(0.01,), gammas=(0.1,), iterations=15, batch=50),
)


def write_views(folder: Path, *names: str) -> Path:
    """Write three views of each of scikit-image's photographs, NAME0.png to NAME2.png; the side is `SIDE` at most."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        for number in range(len(VIEWS)):
            view = view_of(name, number)[0]
            shrink = SIDE / max(view.shape)
            small = cv2.resize(view, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
            cv2.imwrite(str(folder / f"{name}{number}.png"), small)
    return folder


def mined_views(factory: pytest.TempPathFactory) -> MinedMatches:
    """Matches of views of all of `SHOWN`, mined once in a run."""
    return MinedMatches.open(made_once(factory, "mined-views", _mine_views))


def _mine_views(folder: Path) -> Path:
    photos = PhotoSource.open(write_views(folder / "photos", *SHOWN))
    mine_matches(photos, folder / "matches.npz", MiningOptions(propose="random"))
    return folder / "matches.npz"


def recall(matches: MinedMatches, features: np.ndarray, rows: np.ndarray) -> float:
    """Equation 15 of rows of all patches, one feature and one candidate at a time."""
    right = 0
    for x in features.tolist():
        own = rows[matches.reference[x]]
        near = min(np.square(rows[y] - own).sum() for y in matches.positives(x))
        right += all(np.square(rows[y] - own).sum() > near for y in matches.negatives(x))
    return right / len(features)
