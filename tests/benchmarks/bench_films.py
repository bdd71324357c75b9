"""Shots that are found in films, and whether photos find the right shot at the right time.

Run as `python -m tests.benchmarks.bench_films FOLDER`, a folder in Oxford5K layout (`images/`, `gt/`); it never gates.
One film is made of a photo of each of 40 objects, which the camera pans and zooms over for 2 to 6 seconds, with noise
and cuts between. It is searched with these photos, and with other photos of the same objects. With `--film FILE`, the
time that it takes to find the shots of that film alone.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FPS, SIZE = 25, (1280, 720)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--shots", type=int, default=40)
    parser.add_argument("--film", type=Path)
    parser.add_argument("--codec", default="mp4v")
    arguments = parser.parse_args()
    if arguments.film is not None:
        _print_shots(arguments.film, [])
        return
    pairs = list(_pairs(arguments.folder))[: arguments.shots]
    with tempfile.TemporaryDirectory() as scratch:
        film = Path(scratch) / "film.mp4"
        starts = _write(film, [one for one, _ in pairs], arguments.codec)
        print(f"{len(pairs)} shots, {starts[-1] / FPS:.0f} s, {SIZE[0]}x{SIZE[1]}, {film.stat().st_size / 1e6:.0f} MB")
        _print_shots(film, starts)
        _print_found(Path(scratch), film, pairs, starts)


def _pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Give a photo of each object, and another one of it, no photo twice."""
    seen: set[str] = set()
    for query in sorted(folder.glob("gt/*_query.txt")):
        name = query.read_text().split()[0].removeprefix("oxc1_")
        good = (folder / "gt" / query.name.replace("_query", "_good")).read_text().split()
        if good and not seen & {name, *good}:
            yield folder / "images" / f"{good[0]}.jpg", folder / "images" / f"{name}.jpg"
        seen |= {name, *good}


def _write(film: Path, photos: list[Path], codec: str) -> list[int]:
    """Write a film; give the frames at which its shots begin, and the one behind the last."""
    import cv2

    rng = np.random.default_rng(0)
    writer = cv2.VideoWriter(str(film), cv2.VideoWriter.fourcc(*codec), FPS, SIZE)
    noise = [rng.normal(0, 5, (SIZE[1], SIZE[0], 3)).astype(np.float32) for _ in range(7)]
    starts = [0]
    for path in photos:
        photo = cv2.imread(str(path))
        frames = int(rng.integers(2 * FPS, 6 * FPS))
        windows = [_window(photo, rng) for _ in range(2)]
        for number, part in enumerate(np.linspace(0, 1, frames)):
            left, top, width = (1 - part) * windows[0] + part * windows[1]
            scale = SIZE[0] / width
            matrix = np.array([[scale, 0, -scale * left], [0, scale, -scale * top]])
            frame = cv2.warpAffine(photo, matrix, SIZE, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
            writer.write(np.clip(frame + noise[number % len(noise)], 0, 255).astype(np.uint8))
        starts.append(starts[-1] + frames)
    writer.release()
    return starts


def _window(photo: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float64]:
    """Left, top and width of a part of a photo of the film's shape, 60% to 100% of the largest one."""
    height, width = photo.shape[:2]
    across = min(width, height * SIZE[0] / SIZE[1]) * rng.uniform(0.6, 1)
    down = across * SIZE[1] / SIZE[0]
    return np.array([rng.uniform(0, width - across), rng.uniform(0, height - down), across])


def _print_shots(path: Path, starts: list[int]) -> None:
    """Find the shots, and say which of those that are known were found, and how long it took."""
    from retrieval.photos.films import Film
    from retrieval.photos.shots import frames_of_shots, shot_starts, sketch

    before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with path.open("rb") as file:
        film = Film(file, 150_000_000, is_whole=True)
        sketches = [sketch(moment, film._retrieved()) for moment in film._times()]
    reported = list(shot_starts(sketches))
    taken = list(frames_of_shots(sketches))
    elapsed, used = time.perf_counter() - before, resource.getrusage(resource.RUSAGE_SELF).ru_utime - used
    length = sketches[-1].time / 1000
    found = {place for place, (_, begins) in enumerate(reported) if begins}
    print(
        f"cuts found {len(found)}, frames taken {len(taken)}; {used:.1f} s of the processor, {elapsed:.1f} s, "
        f"for {length:.1f} s of {film.size[0]}x{film.size[1]} ({100 * used / length:.0f}%)"
    )
    if starts:
        wanted = set(starts[1:-1])
        shots = np.searchsorted(starts, np.array(taken) * FPS // 1000, "right")
        print(
            f"cuts: {len(wanted & found)} of {len(wanted)}, false {len(found - wanted)}; "
            f"shots with a frame: {len(set(shots.tolist()))} of {len(starts) - 1}"
        )


def _print_found(scratch: Path, film: Path, pairs: list[tuple[Path, Path]], starts: list[int]) -> None:
    """Index the film, and say how many photos find the shot that shows what they show."""
    import cairn

    before = time.perf_counter()
    with cairn.create(scratch / "film.cairn", words=4_000) as collection:
        added = collection.add(film, films=True)
        print(f"{added.added} photos, indexed in {time.perf_counter() - before:.0f} s")
        times = {one.name: one.page for one in collection.photos()}
        for title, queries in (("the photos of the film", 0), ("other photos", 1)):
            right = wrong = 0
            for place, pair in enumerate(pairs):
                first = next((one for one in collection.search(pair[queries], top=1).results if one.found), None)
                if first is None:
                    continue
                frame = (times[first.name] or 0) * FPS // 1000
                is_right = starts[place] <= frame < starts[place + 1]
                right, wrong = right + is_right, wrong + (not is_right)
            print(f"searched with {title}: right shot {right} of {len(pairs)}, a wrong one {wrong}")


if __name__ == "__main__":
    main()
