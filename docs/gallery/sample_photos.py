"""The photos that the examples of the gallery look at.

scikit-image ships a few photographs. Here they become prints that lie on a ground, and somebody takes photos of them:
from another side, nearer or farther, in another light. Nothing is downloaded, and a seed always gives the same photo.
"""

from functools import cache
from pathlib import Path

import numpy as np
from matplotlib import image
from skimage import color, data, transform, util

import cairn

SIZE = (360, 480)  # height and width of a photo, in pixels
PRINTS = {
    "astronaut": data.astronaut,
    "cat": data.chelsea,
    "coffee": data.coffee,
    "coins": data.coins,
    "galaxies": lambda: data.hubble_deep_field()[:600, :760],
    "motorcycle": lambda: data.stereo_motorcycle()[0],
    "page": data.page,
    "photographer": data.camera,
    "rocket": lambda: data.rocket()[:, 150:490],
    "tissue": lambda: data.immunohistochemistry()[:340],
}
_GROUNDS = (data.brick, data.grass, data.gravel)
_TINTS = ((1.0, 0.85, 0.72), (0.9, 0.98, 0.78), (0.88, 0.93, 1.0), (1.0, 0.95, 0.85))


@cache
def read_print(name):
    """Read a photograph: float (H, W, 3), 0 to 1, its longer side 320 pixels, with a white margin."""
    pixels = util.img_as_float(PRINTS[name]())
    pixels = color.gray2rgb(pixels) if pixels.ndim == 2 else pixels
    scale = 320 / max(pixels.shape[:2])
    pixels = transform.resize(pixels, [round(side * scale) for side in pixels.shape[:2]], anti_aliasing=True)
    return np.pad(pixels, [(3, 3), (3, 3), (0, 0)], constant_values=0.96)


def pose(shape, centre, *, size=0.8, turn=0.0, slant=0.0, towards=0.0):
    """Map a print's pixels to those of a photo: (3, 3), for points (x, y, 1).

    ``size`` is its longer side as a share of the photo's width. It is turned in its plane by ``turn`` degrees, and then
    slanted by ``slant`` degrees about an axis through its centre, ``towards`` degrees from the photo's rows.
    """
    turn, slant, towards = np.deg2rad([turn, slant, towards])
    axis = np.array([np.cos(towards), np.sin(towards), 0])
    cross = np.cross(np.eye(3), axis)
    rotation = np.eye(3) + np.sin(slant) * cross + (1 - np.cos(slant)) * cross @ cross
    plane = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    focal = 1.3 * SIZE[1]
    middle = np.array([[1, 0, -shape[1] / 2], [0, 1, -shape[0] / 2], [0, 0, max(shape)]]) / max(shape)
    camera = np.array([[focal, 0, centre[0]], [0, focal, centre[1]], [0, 0, 1]])
    away = np.column_stack([(rotation @ plane)[:, :2], [0, 0, focal / (size * SIZE[1])]])
    matrix = camera @ away @ middle
    return matrix / matrix[2, 2]


def photograph(poses, seed=0, *, light=1.0, noise=0.012):
    """Take a photo, uint8 (360, 480, 3), of prints: ``poses`` has a matrix of `pose` for each name."""
    rng = np.random.default_rng(seed)
    # Waves as strong as those of the texture, but shifted at random: a ground that no other photo has.
    waves = np.abs(np.fft.rfft2(util.img_as_float(_GROUNDS[rng.integers(len(_GROUNDS))]()) - 0.5))
    ground = np.fft.irfft2(waves * np.exp(2j * np.pi * rng.random(waves.shape)))[: SIZE[0], : SIZE[1], None]
    photo = (0.5 + 0.6 * ground).clip(0, 1) * _TINTS[rng.integers(len(_TINTS))]
    for name, matrix in poses.items():
        inverse = transform.ProjectiveTransform(np.linalg.inv(matrix))
        print_ = read_print(name)
        cover = transform.warp(np.ones(print_.shape[:2]), inverse, output_shape=SIZE)[..., None]
        photo = photo * (1 - cover) + cover * transform.warp(print_, inverse, output_shape=SIZE, mode="edge")
    slope = np.linspace(-1, 1, SIZE[1])[None, :, None] * rng.uniform(-0.15, 0.15)
    photo = photo * light * (1 + slope) + noise * rng.standard_normal(photo.shape)
    return util.img_as_ubyte(photo.clip(0, 1))


def take(names, seed=0, *, turn=12.0, slant=35.0, sizes=(0.55, 0.8)):
    """Photograph prints, next to each other, from somewhere: the photo, and the matrix of each of them."""
    rng = np.random.default_rng([*np.ravel(seed), *"".join(names).encode()])
    poses = {}
    for number, name in enumerate(names):
        share = (number + 0.5) / len(names)
        centre = np.array([share * SIZE[1], SIZE[0] / 2]) + rng.uniform(-25, 25, 2)
        shape = read_print(name).shape[:2]
        size = rng.uniform(*sizes) / (1 + 0.45 * (len(names) - 1))
        angles = {"turn": rng.uniform(-turn, turn), "slant": rng.uniform(0, slant), "towards": rng.uniform(0, 360)}
        poses[name] = pose(shape, centre, size=size, **angles)
    return photograph(poses, rng.integers(1 << 30), light=rng.uniform(0.7, 1.15)), poses


def outline(name, matrix):
    """Corners (4, 2) of a print in a photo."""
    height, width = read_print(name).shape[:2]
    return transform.matrix_transform([[0, 0], [width, 0], [width, height], [0, height]], matrix)


def write_photos(folder, each=4, names=tuple(PRINTS), together=1, **how):
    """Write photos of prints, alone or with others of them: ``coffee_1.jpg``, or ``coffee_cat_1.jpg``. Give the paths.

    ``how`` goes to `take`.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = []
    for number, name in enumerate(names):
        for view in range(1, each + 1):
            shown = [name, *(names[(number + view * other) % len(names)] for other in range(1, together))]
            paths.append(Path(folder) / f"{'_'.join(shown)}_{view}.jpg")
            image.imsave(paths[-1], take(shown, view, **how)[0], pil_kwargs={"quality": 92})
    return paths


def labelled_patches(names, views=3, seed=0, *, size=64, most=100):
    """Cut patches whose points are known: uint8 (N, S, S), and the point that each shows, int (N,).

    Regions are detected in several photos of each print. Two show the same point of it where the one, mapped to the
    other's photo, lies within three pixels of it and has about its size. Each print gives at most so many points.
    """
    patches, points = [], []
    for name in names:
        photos = [take([name], [seed, view], turn=15, slant=60, sizes=(0.35, 0.8)) for view in range(views)]
        found = [cairn.detect(photo) for photo, _ in photos]
        reach = [cairn.radii(rows) for rows in found]
        first, to_print = found[0], np.linalg.inv(photos[0][1][name])
        on_print = transform.matrix_transform(first[:, :2], to_print) / read_print(name).shape[1::-1]
        first = first[(np.abs(on_print - 0.5) < 0.45).all(axis=1)]
        found[0], reach[0] = first, cairn.radii(first)
        same = [np.arange(len(first))]
        for rows, extent, (_, poses) in zip(found[1:], reach[1:], photos[1:], strict=True):
            centres, neighbours = (
                transform.matrix_transform(first[:, :2] + [step, 0], poses[name] @ to_print) for step in (0, 1)
            )
            expected = reach[0] * np.linalg.norm(neighbours - centres, axis=1)
            distance = np.linalg.norm(centres[:, None] - rows[:, :2], axis=2)
            distance[np.abs(np.log(expected[:, None] / extent)) > 0.5] = np.inf
            same.append(np.where(distance.min(axis=1) < 3, distance.argmin(axis=1), -1))
        seen = np.stack(same, axis=1)  # region of each photo, or -1, by point
        kept = np.flatnonzero((seen >= 0).sum(axis=1) >= 2)[:most]
        for view, ((photo, _), rows) in enumerate(zip(photos, found, strict=True)):
            shown = kept[seen[kept, view] >= 0]
            patches.append(cairn.patches(photo, rows[seen[shown, view]], size))
            points.append(shown + 10_000 * names.index(name))
    return util.img_as_ubyte(np.concatenate(patches).clip(0, 255) / 255), np.concatenate(points)
