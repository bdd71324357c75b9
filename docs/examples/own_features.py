"""Describe photos with OpenCV's SIFT or ORB, and write what it finds as files that `cairn index --features` takes.

usage: python docs/examples/own_features.py PHOTOS FEATURES [--kind sift|orb] [--side 1024] [--places]

Then: cairn index COLLECTION PHOTOS --features FEATURES
      cairn query COLLECTION PHOTO --features FEATURES/PHOTO.npz
"""

import argparse
from pathlib import Path

import cv2
import numpy as np


def describe(grey: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """Keypoints (N, 4) x, y, radius, angle in radians, and descriptors, of a grey image (H, W) uint8."""
    detector = cv2.SIFT_create(4000) if kind == "sift" else cv2.ORB_create(4000)
    found, rows = detector.detectAndCompute(grey, None)
    if rows is None:  # an image that shows nothing
        rows = np.zeros((0, detector.descriptorSize()), np.uint8 if kind == "orb" else np.float32)
    # OpenCV's size is a diameter, its angle is in degrees, and its top-left pixel has its centre at (0, 0), as here.
    keypoints = [(*one.pt, one.size / 2, np.deg2rad(one.angle)) for one in found]
    if kind == "sift":  # rootSIFT: the square root of what adds up to 1
        rows = np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9))
    return {
        "keypoints": np.array(keypoints, np.float32).reshape(-1, 4),
        "descriptors": rows,
        "scores": np.array([one.response for one in found], np.float32),
        "binary": np.array(kind == "orb"),  # packed bits, eight a byte
    }


def main() -> None:
    """Write a file for each photo: FEATURES/a/1.npz of PHOTOS/a/1.jpg."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("features", type=Path)
    parser.add_argument("--kind", choices=("sift", "orb"), default="sift")
    parser.add_argument("--side", type=int, default=1024, help="longer side at which photos are described, pixels")
    parser.add_argument("--places", action="store_true", help="write x and y alone, as many networks do")
    arguments = parser.parse_args()
    for photo in sorted(arguments.photos.rglob("*")):
        grey = cv2.imread(str(photo), cv2.IMREAD_GRAYSCALE) if photo.is_file() else None  # upright, as EXIF says
        if grey is None:
            continue
        scale = min(1.0, arguments.side / max(grey.shape))
        if scale < 1:
            grey = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        features = describe(grey, arguments.kind)
        if arguments.places:
            features["keypoints"] = features["keypoints"][:, :2]
        # Of the picture that was described: Cairn brings keypoints to the photo's own size.
        features["image_size"] = np.array([grey.shape[1], grey.shape[0]])
        path = arguments.features / photo.relative_to(arguments.photos).with_suffix(".npz")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **features)


if __name__ == "__main__":
    main()
