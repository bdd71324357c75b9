# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy", "pillow", "scikit-image"]
# ///
"""Write a small album of sample photos to try Cairn with: twelve things, each photographed several times.

usage: python sample_photos.py FOLDER      (or: uv run sample_photos.py FOLDER, pipx run sample_photos.py FOLDER)

All are made from photographs that come inside scikit-image; nothing is downloaded. The same program writes the same
photos every time:

- YEAR/NAME-1.jpg to NAME-4.jpg: a thing from four sides, nearer and farther, darker and lighter;
- walls/wall-1.jpg to wall-4.jpg: walls on which three of the things hang;
- copies/: a smaller, a mirrored and a turned copy of three photos.
"""

import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

THINGS = {
    "astronaut": "astronaut.png",
    "camera": "camera.png",
    "cat": "chelsea.png",
    "cells": "ihc.png",
    "coffee": "coffee.png",
    "coins": "coins.png",
    "galaxies": "hubble_deep_field.jpg",
    "moon": "moon.png",
    "motorcycle": "motorcycle_left.png",
    "page": "page.png",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
}
SIZE = (800, 600)
WALLS = (  # colour, and where pictures hang, in pixels
    ((235, 232, 225), ((40, 30), (420, 60), (230, 315))),
    ((150, 90, 70), ((30, 180), (430, 25), (430, 320))),
    ((70, 95, 85), ((230, 20), (40, 310), (430, 300))),
    ((205, 185, 120), ((50, 20), (50, 320), (430, 170))),
)
TAKEN, ORIENTATION = 0x9003, 0x8769  # EXIF: the date a photo was taken, and the part of EXIF that holds it


def read(file: str) -> Image.Image:
    """Read one of scikit-image's photographs, cut to the shape of a photo."""
    with (files("skimage") / "data" / file).open("rb") as stored, Image.open(stored) as photograph:
        return ImageOps.fit(photograph.convert("RGB"), SIZE, Image.Resampling.LANCZOS)


def photograph_again(picture: Image.Image, rng: np.random.Generator, nearness: float) -> Image.Image:
    """Photograph a picture again: a part of it, from one side, a little turned, in another light."""
    width, height = picture.size
    centre = np.array([width, height]) / 2
    angle = np.deg2rad(rng.uniform(-14, 14))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]]) * centre * nearness
    corners = corners * rng.uniform(0.78, 1.0, (4, 1)) @ turn.T + centre  # no rectangle any more: seen at a slant
    corners = corners.clip(0, [width - 1, height - 1])
    seen = picture.transform(SIZE, Image.Transform.QUAD, corners.ravel().tolist(), Image.Resampling.BICUBIC)
    return expose(seen, rng)


def expose(photo: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Change the light and add the noise of a sensor."""
    photo = ImageEnhance.Brightness(photo).enhance(rng.uniform(0.75, 1.2))
    photo = ImageEnhance.Contrast(photo).enhance(rng.uniform(0.85, 1.15))
    noisy = np.asarray(photo, np.float32) + rng.normal(0, 3, (photo.height, photo.width, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def hang(pictures: list[Image.Image], where: int, rng: np.random.Generator) -> Image.Image:
    """Hang three pictures on a plain wall, and photograph it."""
    paint, places = WALLS[where]
    light = np.tile(np.linspace(1.0, 0.75, SIZE[0])[:: rng.choice((-1, 1))], (SIZE[1], 1))
    wall = Image.fromarray((light[..., None] * paint).astype(np.uint8))
    for (x, y), picture in zip(places, pictures, strict=True):
        print_ = ImageOps.expand(
            picture.resize((300, 225), Image.Resampling.LANCZOS), int(rng.integers(2, 14)), "white"
        )
        colour = str(rng.choice(["#4a3628", "#b08d2e", "#222222", "#7a7f85"]))
        frame = ImageOps.expand(print_, int(rng.integers(4, 12)), colour).convert("RGBA")
        frame = frame.rotate(rng.uniform(-6, 6), Image.Resampling.BICUBIC, expand=True)
        wall.paste(frame, (x + int(rng.integers(-15, 15)), y + int(rng.integers(-15, 15))), frame)
    return expose(wall, rng)


def write(photo: Image.Image, path: Path, taken: str) -> None:
    """Write a JPEG file with the date that it was taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif.get_ifd(ORIENTATION)[TAKEN] = taken
    photo.save(path, quality=88, exif=exif)


def main(folder: Path) -> None:
    """Write all photos below a folder."""
    pictures = {name: read(file) for name, file in THINGS.items()}
    for number, (name, picture) in enumerate(pictures.items()):
        for view, nearness in enumerate((1.0, 0.9, 0.75, 0.6), start=1):
            rng = np.random.default_rng([number, view])
            photo = expose(picture, rng) if view == 1 else photograph_again(picture, rng, nearness)
            year = 2019 + view
            write(photo, folder / str(year) / f"{name}-{view}.jpg", f"{year}:{number + 1:02d}:15 10:30:00")
    for number in range(len(WALLS)):
        rng = np.random.default_rng([100, number])
        shown = rng.permutation(len(pictures))[:3]
        photo = hang([list(pictures.values())[one] for one in shown], number, rng)
        write(photo, folder / "walls" / f"wall-{number + 1}.jpg", f"2024:{number + 1:02d}:01 15:00:00")
    with Image.open(folder / "2020" / "cat-1.jpg") as cat:
        write(cat.resize((400, 300)), folder / "copies" / "cat-small.jpg", "2020:03:15 10:30:00")
    with Image.open(folder / "2020" / "coins-1.jpg") as coins:
        write(ImageOps.mirror(coins), folder / "copies" / "coins-mirrored.jpg", "2020:06:15 10:30:00")
    with Image.open(folder / "2021" / "rocket-2.jpg") as rocket:
        write(
            rocket.transpose(Image.Transpose.ROTATE_90), folder / "copies" / "rocket-turned.jpg", "2021:12:15 10:30:00"
        )
    print(f"{len(list(folder.rglob('*.jpg')))} photos in {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
