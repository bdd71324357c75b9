"""Simulated photos of flat prints, drawn from scikit-image's photographs: pose, ground, clutter, light and noise."""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.errors import CairnError

WIDTH, HEIGHT = 640, 480  # pixels of every photo made
_FOCAL = 770.0  # pixels: a 45 degree field of view
_SIZE = 420.0  # pixels of a print's longer side, seen from the front at scale 1
_MARGIN = 0.025  # the print's white margin, as a part of its longer side
_OVERSAMPLING = 2  # photos are rendered at twice their size and averaged down, against aliasing
_STEPS = 16  # of a grey level in a contrast curve
_OVERSAMPLE = np.array(
    [[_OVERSAMPLING, 0, (_OVERSAMPLING - 1) / 2], [0, _OVERSAMPLING, (_OVERSAMPLING - 1) / 2], [0, 0, 1]]
)

# Clutter prints that occur in any photo, of an object or a distractor, and so carry no information.
_CLUTTER: tuple[tuple[str, tuple[int, int, int, int] | None], ...] = (
    ("hubble_deep_field.jpg", (600, 300, 1000, 872)),
    ("cell.png", None),
    ("clock_motion.png", None),
    ("color.png", None),
    ("logo.png", None),
    ("text.png", None),
    ("grass.png", (0, 0, 256, 256)),
    ("gravel.png", (256, 256, 512, 512)),
    ("brick.png", (128, 128, 448, 384)),
)
# Backgrounds: texture and the possible colours (RGB, 0 to 255) of its white.
_GROUNDS: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...] = (
    ("brick.png", ((255, 170, 140), (240, 225, 205), (205, 215, 235))),
    ("grass.png", ((190, 235, 130), (225, 225, 140), (235, 215, 170))),
    ("gravel.png", ((245, 235, 225), (225, 205, 180), (200, 210, 225))),
)


@dataclass(frozen=True)
class ViewRecipe:
    """Parameters of a view of an object; angles are in degrees, jittered by a few."""

    yaw: float = 0.0  # rotation about the vertical axis; random sign
    pitch: float = 0.0  # rotation about the horizontal axis; random sign
    roll: float = 0.0  # rotation in the image plane; random sign
    scale: float = 1.0  # 1: the longer side covers _SIZE pixels when seen from the front
    outside: float = 0.0  # share of the object's extent pushed out of the picture
    occluders: int = 0  # clutter laid over the object
    gain: float = 1.0  # exposure
    gamma: float = 1.0  # contrast curve; above 1 is darker
    gradient: float = 0.2  # fall-off of light from one side to the other
    blur: float = 0.4  # Gaussian sigma in pixels
    noise: float = 2.0  # standard deviation in grey levels
    quality: int = 88  # of the JPEG file


@dataclass(frozen=True)
class DemoView:
    """One photo of an object, with its ground truth."""

    photo: NDArray[np.uint8]  # uint8 (HEIGHT, WIDTH, 3) RGB
    homography: NDArray[np.float64]  # float64 (3, 3): from the print's pixels to the photo's
    box: NDArray[np.float64]  # float64 (4,): x0, y0, x1, y1 of the object's part inside the photo, in pixels
    visible: float  # visible share of the object's area: neither cut off nor covered
    slant: float  # degrees between the print's normal and the camera's axis


@lru_cache(maxsize=32)
def photograph(name: str) -> NDArray[np.float32]:
    """Read a bundled photograph: (H, W, 3) float32 RGB, 0 to 255. scikit-image's own reader could download."""
    try:
        with (files("skimage") / "data" / name).open("rb") as file, Image.open(file) as picture:
            flat = Image.new("RGBA", picture.size, "white")
            flat.alpha_composite(picture.convert("RGBA"))
            pixels = np.asarray(flat.convert("RGB"), dtype=np.float32)
    except OSError as error:
        raise CairnError(f"scikit-image comes without its photograph {name}: install it again.") from error
    pixels.flags.writeable = False  # one array, shared by all callers
    return pixels


def pose_homography(
    shape: tuple[int, int], centre: NDArray[np.float64], yaw: float, pitch: float, roll: float, scale: float
) -> tuple[NDArray[np.float64], float]:
    """Homography from a print's pixels to the photo's, its centre seen at ``centre``, and its slant in degrees."""
    (cy, sy), (cp, sp), (cr, sr) = ((np.cos(a), np.sin(a)) for a in np.deg2rad((yaw, pitch, roll)))
    rotation = (
        np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
        @ np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
        @ np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    )
    height, width = shape
    longer = max(shape)
    to_plane = np.array([[1, 0, -(width - 1) / 2], [0, 1, -(height - 1) / 2], [0, 0, longer]]) / longer
    camera = np.array([[_FOCAL, 0, (WIDTH - 1) / 2], [0, _FOCAL, (HEIGHT - 1) / 2], [0, 0, 1]])
    depth = _FOCAL / (_SIZE * scale)
    translation = depth * np.linalg.solve(camera, [*centre, 1.0])
    homography = camera @ np.column_stack([rotation[:, :2], translation]) @ to_plane
    # Without the last digits, in which libraries of linear algebra differ.
    return np.round(homography / homography[2, 2], 9), float(np.rad2deg(np.arccos(rotation[2, 2])))


def _corners(shape: tuple[int, int], homography: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corners of a picture of that (height, width), half a pixel beyond its outer pixels' centres: (4, 2)."""
    x1, y1 = shape[1] - 0.5, shape[0] - 0.5
    corners = np.array([[-0.5, -0.5], [x1, -0.5], [x1, y1], [-0.5, y1]])
    return np.asarray(cv2.perspectiveTransform(corners[None], homography)[0])


def _paste(canvas: NDArray[np.float32], print_: NDArray[np.float32], homography: NDArray[np.float64]) -> None:
    """Lay a print with a white margin and a soft shadow on an oversampled canvas, in place."""
    height, width = print_.shape[:2]
    # Photographs far larger than their view are averaged down first; oversampling handles the rest.
    edges = np.linalg.norm(np.diff(_corners((height, width), homography), axis=0), axis=1)
    ratio = max(edges[1] / height, edges[0] / width, edges[2] / width) * _OVERSAMPLING
    if ratio < 0.75:
        size = (max(round(width * ratio), 1), max(round(height * ratio), 1))
        print_ = np.asarray(cv2.resize(print_, size, interpolation=cv2.INTER_AREA))
        fx, fy = width / size[0], height / size[1]
        homography = homography @ np.array([[fx, 0, (fx - 1) / 2], [0, fy, (fy - 1) / 2], [0, 0, 1]])
    margin = round(max(print_.shape[:2]) * _MARGIN)
    print_ = np.asarray(
        cv2.copyMakeBorder(print_, margin, margin, margin, margin, cv2.BORDER_CONSTANT, value=(245, 245, 240))
    )
    matrix = _OVERSAMPLE @ homography @ np.array([[1.0, 0, -margin], [0, 1, -margin], [0, 0, 1]])

    # Only the part of the canvas under the print and its shadow is changed.
    fall = 5 * _OVERSAMPLING
    corners = _corners(print_.shape[:2], matrix)
    limit = canvas.shape[1::-1]
    x0, y0 = (int(v) for v in np.floor(corners.min(axis=0) - 5 * fall).clip(0, limit))
    x1, y1 = (int(v) for v in np.ceil(corners.max(axis=0) + 5 * fall).clip(0, limit))
    if x0 >= x1 or y0 >= y1:  # wholly outside
        return
    part = canvas[y0:y1, x0:x1]
    matrix = np.array([[1.0, 0, -x0], [0, 1, -y0], [0, 0, 1]]) @ matrix
    cover = cv2.warpPerspective(np.ones(print_.shape[:2], np.float32), matrix, (x1 - x0, y1 - y0))
    warped: NDArray[np.float32] = np.asarray(
        cv2.warpPerspective(print_, matrix, (x1 - x0, y1 - y0), borderMode=cv2.BORDER_REPLICATE), np.float32
    )
    fallen = np.array([[1.0, 0, fall], [0, 1, fall]])
    shadow = cv2.GaussianBlur(cv2.warpAffine(cover, fallen, (x1 - x0, y1 - y0)), (0, 0), fall)
    # One factor for each channel: NumPy multiplies whole rows far faster than it broadcasts three values at a time.
    part *= cv2.merge([1 - 0.5 * shadow] * 3)
    warped -= part
    warped *= np.asarray(cv2.merge([cover] * 3), np.float32)
    part += warped


def render_ground(rng: np.random.Generator) -> NDArray[np.float32]:
    """An oversampled, tinted, slanted texture: float32 (H, W, 3)."""
    name, tints = _GROUNDS[int(rng.integers(len(_GROUNDS)))]
    tint = np.array(tints[int(rng.integers(len(tints)))], np.float32) / 255
    texture = photograph(name)[..., 0]
    centre = np.array([WIDTH, HEIGHT]) * rng.uniform(0.3, 0.7, 2)
    yaw, pitch = rng.uniform(-25, 25, 2)
    homography, _ = pose_homography(texture.shape, centre, yaw, pitch, rng.uniform(-180, 180), rng.uniform(1, 2))
    size = (WIDTH * _OVERSAMPLING, HEIGHT * _OVERSAMPLING)
    warped = cv2.warpPerspective(texture, _OVERSAMPLE @ homography, size, borderMode=cv2.BORDER_REFLECT_101)
    # Paler than the prints and slightly out of focus, so that it does not dominate them.
    warped = cv2.GaussianBlur(warped, (0, 0), _OVERSAMPLING * rng.uniform(0.5, 1.5))
    return np.asarray((warped.mean() + rng.uniform(0.4, 0.8) * (warped - warped.mean()))[..., None] * tint)


def _clutter(rng: np.random.Generator) -> NDArray[np.float32]:
    """A piece of clutter, drawn at random: float32 (H, W, 3)."""
    name, crop = _CLUTTER[int(rng.integers(len(_CLUTTER)))]
    x0, y0, x1, y1 = crop or (None, None, None, None)
    return photograph(name)[y0:y1, x0:x1]


def scatter(canvas: NDArray[np.float32], count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Lay ``count`` pieces of clutter anywhere on the canvas, in place."""
    for _ in range(count):
        print_ = _clutter(rng)
        centre = np.array([WIDTH, HEIGHT]) * rng.uniform(0, 1, 2)
        pose = (*rng.uniform(-30, 30, 3), rng.uniform(0.3, 0.6))
        _paste(canvas, print_, pose_homography(print_.shape[:2], centre, *pose)[0])
    return canvas


def _fill(shape: tuple[int, int], homography: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the pixels of the photo that show a picture of that (height, width): bool (HEIGHT, WIDTH)."""
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.fillConvexPoly(mask, np.round(_corners(shape, homography)).astype(np.int32), 1)
    return mask.astype(bool)


def _occlude(
    canvas: NDArray[np.float32],
    inside: NDArray[np.bool_],
    corners: NDArray[np.float64],
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Lay ``count`` pieces of clutter over the object's edges, in place; return the visible 0.4 to 0.7."""
    size = np.sqrt(inside.sum()) / _SIZE
    for _ in range(100):
        left = inside.copy()
        pieces = []
        for print_ in (_clutter(rng) for _ in range(count)):
            corner = int(rng.integers(4))
            centre = corners[corner] + rng.uniform(0.2, 0.8) * (corners[(corner + 1) % 4] - corners[corner])
            pose = (*rng.uniform(-30, 30, 3), size * rng.uniform(0.55, 0.8))
            pieces.append((print_, pose_homography(print_.shape[:2], centre, *pose)[0]))
            left &= ~_fill(print_.shape[:2], pieces[-1][1])
        if 0.4 <= left.sum() / inside.sum() <= 0.7:
            break
    for print_, homography in pieces:
        _paste(canvas, print_, homography)
    return left


def shrink(canvas: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average the oversampled canvas down to the photo's size."""
    return np.asarray(cv2.resize(canvas, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA))


def expose(photo: NDArray[np.float32], recipe: ViewRecipe, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Light, lens and sensor: gain, gamma, a gradient, a slight colour cast, blur and noise; uint8 (H, W, 3)."""
    angle = rng.uniform(0, 2 * np.pi)
    across = np.cos(angle) * np.linspace(-0.5, 0.5, WIDTH) + np.sin(angle) * np.linspace(-0.5, 0.5, HEIGHT)[:, None]
    light = recipe.gain * rng.uniform(0.92, 1.08) * (1 + recipe.gradient * across)
    warmth = rng.uniform(-0.06, 0.06)
    lit = (light[..., None] * np.array([1 + warmth, 1, 1 - warmth])).astype(np.float32)
    # By a table: powers differ in their last digits between processors.
    curve = [round((step / (255 * _STEPS)) ** recipe.gamma, 7) for step in range(255 * _STEPS + 1)]
    lit *= np.array(curve, np.float32)[np.rint(photo * _STEPS).astype(np.int64).clip(0, 255 * _STEPS)]
    if recipe.blur:
        lit = cv2.GaussianBlur(lit, (0, 0), recipe.blur)
    # A soft shoulder instead of clipping, as cameras do: bright prints keep their detail.
    excess = (lit - 0.8) / 0.2
    lit = np.where(lit > 0.8, 0.8 + 0.2 * excess / np.sqrt(1 + excess * excess), lit)
    noisy = lit * 255 + recipe.noise * rng.standard_normal(photo.shape, dtype=np.float32)
    return np.asarray(np.round(noisy).clip(0, 255).astype(np.uint8))


def render_view(print_: NDArray[np.float32], recipe: ViewRecipe, rng: np.random.Generator) -> DemoView:
    """Take one photo of an object, a float32 (H, W, 3) print, over a ground with clutter."""
    shape = print_.shape[:2]
    yaw, pitch, roll = (rng.choice([-1, 1]) * (a + rng.uniform(-4, 4)) for a in (recipe.yaw, recipe.pitch, recipe.roll))
    scale = recipe.scale * rng.uniform(0.93, 1.07)
    middle = np.array([(WIDTH - 1) / 2, (HEIGHT - 1) / 2])
    extent = np.ptp(_corners(shape, pose_homography(shape, middle, yaw, pitch, roll, scale)[0]), axis=0)
    room = np.maximum((np.array([WIDTH, HEIGHT]) - extent) / 2 - 12, 0)
    centre = middle + room * rng.uniform(-1, 1, 2)
    if recipe.outside:
        # Shift along one axis: the object's centre stays inside the border, but a part is cut off.
        axis = int(rng.integers(2))
        side = rng.choice([-1, 1])
        centre[axis] = middle[axis] + side * (middle[axis] - (0.5 - recipe.outside) * extent[axis])
    homography, slant = pose_homography(shape, centre, yaw, pitch, roll, scale)

    canvas = scatter(render_ground(rng), int(rng.integers(2, 5)), rng)
    _paste(canvas, print_, homography)
    corners = _corners(shape, homography)
    mask = _fill(shape, homography)
    if recipe.occluders:
        mask = _occlude(canvas, mask, corners, recipe.occluders, rng)
    x, y = corners.T
    area = 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    visible = min(float(mask.sum() / area), 1.0)
    box = np.concatenate([corners.min(axis=0), corners.max(axis=0)]).clip(0, [WIDTH - 1, HEIGHT - 1] * 2)
    return DemoView(expose(shrink(canvas), recipe, rng), homography, box, visible, slant)
