"""A small set of labelled patches for boosting."""

from pathlib import Path

import cv2
import numpy as np

from learning.patches.phototour import write_bitmaps, write_info, write_pairs
from tests.support.learning.learnt_models import textures

POINTS, VIEWS = 90, 3


def write_views(folder: Path) -> Path:
    """Textures seen three times, shifted, rotated and noisy; two thirds of the points are for training."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    views = []
    for patch in textures(POINTS, 64, sigma=4):
        for _ in range(VIEWS):
            turn = cv2.getRotationMatrix2D((31.5, 31.5), rng.normal() * 8, np.exp(rng.normal() * 0.1))
            turn[:, 2] += rng.normal(size=2) * 2
            view = cv2.warpAffine(patch, turn, (64, 64), borderMode=cv2.BORDER_REFLECT)
            views.append(np.clip(view + 15 * rng.normal(size=view.shape), 0, 255))
    points = np.arange(POINTS * VIEWS) // VIEWS
    write_bitmaps(folder, np.rint(views).astype(np.uint8))
    write_info(folder, points, np.zeros_like(points))
    for split, chosen in enumerate((np.arange(60), np.arange(60, POINTS))):
        first = np.concatenate([VIEWS * chosen, VIEWS * chosen + 1])
        others = np.concatenate([VIEWS * np.roll(chosen, 1), VIEWS * np.roll(chosen, 3) + 2])
        write_pairs(folder, split, np.tile(first, 2), np.concatenate([first + 1, others]), points)
    return folder
