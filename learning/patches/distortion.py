"""Random changes of camera, light, blur and noise of a picture."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from retrieval.regions.geometry import rotations


def draw_linear(rng: np.random.Generator, rotation: float, stretch: float, scale: float) -> NDArray[np.float64]:
    """Draw a linear map (2, 2) float64: a turn, and a stretch in a random direction.

    `rotation` is the standard deviation of the turn, degrees, `stretch` of the logarithm of the stretch.
    """
    turn, axes = rotations(np.array([np.deg2rad(rotation) * rng.standard_normal(), rng.uniform(0, np.pi)]))
    along = np.exp(stretch * rng.standard_normal())
    linear = turn @ axes @ np.diag([along, 1 / along]) @ axes.T
    return np.asarray(linear * np.exp(scale * rng.standard_normal()))


def expose(
    picture: NDArray[np.floating], rng: np.random.Generator, blur: float, gamma: float, noise: float
) -> NDArray[np.uint8]:
    """Change the light of a picture (H, W) float32, 0..255, and return uint8; one in two is blurred, one in two gets
    noise.

    `blur` (pixels) and `noise` (grey values) are the largest standard deviations, `gamma` is that of the logarithm of
    the exponent.
    """
    light: NDArray[Any] = picture
    blurred, noisy = rng.random(2) < 0.5
    if blurred:
        light = cv2.GaussianBlur(light, (0, 0), max(blur * rng.random(), 0.1))
    light = 255 * (light / 255) ** np.float32(np.exp(gamma * rng.standard_normal()))
    if noisy:
        light += noise * rng.random() * rng.standard_normal(light.shape, dtype=np.float32)
    return np.clip(np.rint(light), 0, 255).astype(np.uint8)
