"""A small retrieval benchmark of scikit-image's bundled photographs, with known homographies: nothing is downloaded."""

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eval.demo.scenes import DemoView, ViewRecipe, expose, photograph, render_ground, render_view, scatter, shrink
from index.errors import CairnError

# The objects: name, file, and the crop x0, y0, x1, y1 in its pixels where the rest of it is clutter.
_OBJECTS: tuple[tuple[str, str, tuple[int, int, int, int] | None], ...] = (
    ("astronaut", "astronaut.png", None),
    ("camera", "camera.png", None),
    ("cat", "chelsea.png", None),
    ("coffee", "coffee.png", None),
    ("coins", "coins.png", None),
    ("galaxies", "hubble_deep_field.jpg", (0, 0, 560, 560)),
    ("moon", "moon.png", None),
    ("motorcycle", "motorcycle_left.png", None),
    ("page", "page.png", None),
    ("retina", "retina.jpg", None),
    ("rocket", "rocket.jpg", None),
    ("tissue", "ihc.png", None),
)
# The first two views are the queries. From the ninth view on the recipes repeat, with other random draws.
_RECIPES = (
    ViewRecipe(yaw=5, pitch=5, scale=0.95),
    ViewRecipe(yaw=30, pitch=8, scale=0.75, gain=0.85, noise=4),
    ViewRecipe(pitch=35, scale=0.85, gain=1.15, quality=75),
    ViewRecipe(yaw=50, pitch=10, scale=0.95, gradient=0.4),
    ViewRecipe(yaw=20, roll=6, scale=0.5, gamma=1.5, gain=0.8, noise=5),
    ViewRecipe(yaw=12, pitch=12, roll=32, scale=0.8, blur=1.1, quality=60),
    ViewRecipe(yaw=18, scale=1.3, outside=0.4, gain=1.25, gamma=0.8),
    ViewRecipe(yaw=25, pitch=20, scale=0.8, occluders=2, gradient=0.5, noise=7, quality=45),
)


@dataclass(frozen=True)
class DemoCollection:
    """Folder and contents of a demo collection."""

    images: Path  # the photos, NAME_001.jpg
    gt: Path  # Oxford5K layout: NAME_1_query.txt and its good, ok and junk lists
    homographies: Path  # homographies.json: from each object's photograph to each of its views
    objects: tuple[str, ...]  # the objects' names
    photos: int  # number of all photos, including distractors
    distractors: int  # photos without any object
    queries: int  # boxes, two for each object


def build_demo_collection(
    folder: str | Path, seed: int = 0, *, views: int = len(_RECIPES), distractors: int = 36
) -> DemoCollection:
    """Write the demo collection: photos, ground truth and homographies. A query is a box around the object in one of
    its first two views; that photo is junk. Views with less than 0.6 of the object visible, or slanted by more than 45
    degrees, are ``ok``, others ``good``. ``homographies.json`` maps pixels (x, y) of the object's photograph, centres
    at integers, to pixels of each view.
    """
    if views < 3 or distractors < 0:
        raise ValueError("a demo collection needs at least 3 views and no negative number of distractors.")
    folder = Path(folder)
    images, gt = folder / "images", folder / "gt"
    names = [name for name, _, _ in _OBJECTS]
    stems = {f"{name}_{view:03d}" for name in names for view in range(1, views + 1)}
    stems |= {f"distractor_{number:03d}" for number in range(1, distractors + 1)}
    truths = {f"{name}_{q}_{kind}" for name in names for q in (1, 2) for kind in ("query", "good", "ok", "junk")}
    for place, expected in ((images, {f"{s}.jpg" for s in stems}), (gt, {f"{t}.txt" for t in truths})):
        place.mkdir(parents=True, exist_ok=True)
        if others := {path.name for path in place.iterdir()} - expected:
            raise CairnError(f"{place} already holds other files ({min(others)}, ...): choose an empty folder.")

    record: dict[str, Any] = {"seed": seed, "objects": {}, "views": {}}
    for name, file, crop in _OBJECTS:
        source = photograph(file)
        x0, y0, x1, y1 = crop or (0, 0, source.shape[1], source.shape[0])
        record["objects"][name] = {"file": file, "box": [x0, y0, x1, y1]}
        photos: dict[str, DemoView] = {}
        for number in range(1, views + 1):
            rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
            recipe = _RECIPES[(number - 1) % len(_RECIPES)]
            stem = f"{name}_{number:03d}"
            view = photos[stem] = render_view(source[y0:y1, x0:x1], recipe, rng)
            _write(images / f"{stem}.jpg", view.photo, recipe.quality)
            homography = view.homography @ np.array([[1.0, 0, -x0], [0, 1, -y0], [0, 0, 1]])
            record["views"][stem] = {
                "object": name,
                "homography": (homography / homography[2, 2]).tolist(),
                "visible": round(view.visible, 3),
                "slant": round(view.slant, 1),
                "recipe": asdict(recipe),
            }
        _write_truth(gt, name, photos)
    for number in range(1, distractors + 1):
        rng = np.random.default_rng([seed, zlib.crc32(b"distractor"), number])
        recipe = _RECIPES[int(rng.integers(len(_RECIPES)))]
        photo = scatter(render_ground(rng), int(rng.integers(0, 6)), rng)
        _write(images / f"distractor_{number:03d}.jpg", expose(shrink(photo), recipe, rng), recipe.quality)

    photograph.cache_clear()  # some 60 MB
    homographies = folder / "homographies.json"
    homographies.write_text(json.dumps(record, indent=1) + "\n")
    return DemoCollection(
        images=images,
        gt=gt,
        homographies=homographies,
        objects=tuple(names),
        photos=len(stems),
        distractors=distractors,
        queries=2 * len(names),
    )


def _write_truth(gt: Path, name: str, photos: dict[str, DemoView]) -> None:
    """Write the two queries of an object and their lists, in the layout of Oxford5K."""
    for number, query in enumerate(list(photos)[:2], start=1):
        lists: dict[str, list[str]] = {"good": [], "ok": [], "junk": [query]}
        for stem, view in photos.items():
            if stem != query:
                lists["good" if view.visible >= 0.6 and view.slant <= 45 else "ok"].append(stem)
        box = " ".join(f"{value:.1f}" for value in photos[query].box)
        (gt / f"{name}_{number}_query.txt").write_text(f"{query} {box}\n")
        for kind, members in lists.items():
            (gt / f"{name}_{number}_{kind}.txt").write_text("".join(f"{stem}\n" for stem in members))


def _write(path: Path, photo: NDArray[np.uint8], quality: int) -> None:
    Image.fromarray(photo).save(path, quality=quality)
