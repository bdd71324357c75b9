"""Approximate k-means compared with exact Lloyd (`faiss.Kmeans`): time, processor time and quantisation error.

Run as `python -m tests.benchmarks.bench_kmeans --photos DIR`; it never gates. At full size (20,000 words, 800,000
descriptors, 10 iterations) exact Lloyd takes some minutes.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import faiss
import numpy as np

from index.clustering.kmeans import KMeansOptions, approximate_kmeans
from index.clustering.sources import ArraySource

SUFFIXES = {".jpg", ".jpeg", ".png"}
LONGER_SIDE = 1024
# The error is measured against exact search, on this many descriptors.
SAMPLE = 20_000


def root_sift(folder: Path, count: int) -> np.ndarray:
    """Up to `count` rootSIFT descriptors (N, 128) float32 of the photos in a folder, in a random order."""
    detector = cv2.SIFT_create(nfeatures=8000, contrastThreshold=0.02)
    parts: list[np.ndarray] = []
    for path in sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES):
        photo = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        if photo is None:
            continue
        scale = min(1.0, LONGER_SIDE / max(photo.shape))
        photo = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        descriptors = detector.detectAndCompute(photo, None)[1]
        if descriptors is not None:
            parts.append(np.sqrt(descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-9)))
        if sum(map(len, parts)) >= count:
            break
    if not parts:
        raise SystemExit(f"{folder} holds no photos with features")
    return np.random.default_rng(0).permutation(np.concatenate(parts))[:count].astype(np.float32)


def timed(function: Callable[[], np.ndarray]) -> tuple[np.ndarray, float, float]:
    """A function's answer, and the seconds and processor seconds it took."""
    wall, processor = time.perf_counter(), time.process_time()
    answer = function()
    return answer, time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--photos", type=Path, required=True, metavar="DIR")
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--descriptors", type=int, default=800_000)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    points = root_sift(arguments.photos, arguments.descriptors)
    sample = points[:: max(1, len(points) // SAMPLE)]
    faiss.omp_set_num_threads(arguments.threads)
    options = KMeansOptions(arguments.words, arguments.iterations, arguments.seed, sample_per_word=0)
    print(
        f"{len(points):,} rootSIFT descriptors, {arguments.words:,} words, {arguments.iterations} iterations, ", end=""
    )
    print(f"{arguments.threads} threads", flush=True)

    def approximate() -> np.ndarray:
        return approximate_kmeans(ArraySource(points), options).centres

    def exact() -> np.ndarray:
        lloyd = faiss.Kmeans(
            points.shape[1],
            arguments.words,
            niter=arguments.iterations,
            seed=arguments.seed,
            max_points_per_centroid=len(points),
            min_points_per_centroid=1,
        )
        lloyd.train(points)
        return lloyd.centroids

    print(f"{'':22}{'seconds':>9}{'processor s':>13}{'error':>10}", flush=True)
    rows = []
    for name, function in (("approximate k-means", approximate), ("exact Lloyd (faiss)", exact)):
        centres, wall, processor = timed(function)
        error = float(faiss.knn(sample, centres, 1)[0].mean())
        rows.append(np.array([wall, processor, error]))
        print(f"{name:22}{wall:9.1f}{processor:13.1f}{error:10.5f}", flush=True)
    ratios = rows[1] / rows[0]
    print(f"speed-up {ratios[0]:.1f}, by processor time {ratios[1]:.1f}, quantisation error ratio {1 / ratios[2]:.4f}")


if __name__ == "__main__":
    main()
