"""Lists of pairs and queries of the tasks of HPatches: the benchmark's own, or drawn by a seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.hpatches.release import HPatchesSequence
from index.arrays import load_json
from index.errors import CairnError
from index.text import one_of, shown
from retrieval.catalogue.tables.reading import open_csv

PAIRS = 1_000_000
"""Pairs of each kind drawn by the benchmark."""
QUERIES, DISTRACTORS = 10_000, 20_000
"""Patches for queries and for the database of retrieval."""

_DRAWN_IMAGES = 5  # the benchmark draws pairs from the reference and four of the five others (`np.arange(5)`)
_CONTRAST = 10  # standard deviation of grey values that a patch for retrieval exceeds
_SPLITS = ("full", "illum", "view")  # splits that need no list


@dataclass(frozen=True)
class ListedPatches:
    """Patches: each by the number of its sequence, its image (0: the reference, else 1 to 5), and its own number."""

    sequences: NDArray[np.int64]  # (M,) indices into `Lists.sequences`
    images: NDArray[np.int64]  # (M,)
    numbers: NDArray[np.int64]  # (M,)

    def __len__(self) -> int:
        return len(self.numbers)


Pairs = tuple[ListedPatches, ListedPatches]


@dataclass(frozen=True)
class Lists:
    """Data of the tasks: pairs for verification, and patches of reference images for retrieval."""

    split: str  # name of the choice of sequences
    sequences: tuple[str, ...]  # test sequences
    # for verification: matching pairs; non-matching pairs of one sequence; of two sequences
    positives: Pairs
    intra: Pairs
    inter: Pairs
    # for retrieval: patches of reference images
    queries: ListedPatches
    distractors: ListedPatches
    source: str  # their origin, in words
    is_published: bool  # whether they are the benchmark's own, complete: figures are comparable with published ones


def choose_sequences(
    sequences: Mapping[str, HPatchesSequence], split: str | None, tasks: Path | None
) -> tuple[str, dict[str, HPatchesSequence]]:
    """Name and test sequences of a split: full, illum, view, or a, b, c of ``splits.json`` (a with `tasks`)."""
    split = split or ("a" if tasks is not None else "full")
    if tasks is None:
        if split not in _SPLITS:
            raise CairnError(
                "The split {split} is in the benchmark's splits.json: name its folder by {--tasks}, or choose "
                "{splits}.",
                split=shown(split),
                splits=one_of(_SPLITS),
            )
        letter = {"illum": "i", "view": "v"}.get(split, "")
        chosen = {name: one for name, one in sequences.items() if name.startswith(letter)}
        if len(chosen) < 2:
            raise CairnError(
                f"The split {split} has {len(chosen)} sequences here: patches of two at least are compared."
            )
        return split, chosen
    folder = _tasks_folder(tasks)
    places = (folder / "splits" / "splits.json", folder / "splits.json", folder.parent / "python/utils/splits.json")
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise CairnError(f"There is no splits.json in {folder} or {folder / 'splits'}: take it from the benchmark.")
    splits = load_json(path)
    entry = splits.get(split) if isinstance(splits, dict) else None
    names = entry.get("test") if isinstance(entry, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not names:
        raise CairnError(f"{path} has no split {shown(split)} with a list of test sequences.")
    missing = [name for name in names if name not in sequences]
    if missing:
        raise CairnError(
            f"{len(missing)} of the {len(names)} test sequences of the split {split}, such as {shown(missing[0])}, are "
            "not there: unpack the whole set."
        )
    return split, {name: sequences[name] for name in names}


def read_lists(
    tasks: Path, split: str, sequences: Mapping[str, HPatchesSequence], wanted: set[str], most: int = 0
) -> Lists:
    """Read the benchmark's lists, ``verif_*_split-X.csv`` and ``retr_*_split-X.csv``, `most` (0: all) of each."""
    folder = _tasks_folder(tasks)
    empty = _empty()
    pairs = {kind: (empty, empty) for kind in ("pos", "neg_intra", "neg_inter")}
    if "verification" in wanted:
        pairs = {kind: _read_pairs(folder / f"verif_{kind}_split-{split}.csv", sequences, most) for kind in pairs}
    patches = {"queries": empty, "distractors": empty}
    if "retrieval" in wanted:
        patches = {
            kind: _read_patches(folder / f"retr_{kind}_split-{split}.csv", sequences, most if kind == "queries" else 0)
            for kind in patches
        }
    shares = f", the first {most} of each list" if most else ""
    return Lists(
        split, tuple(sequences), pairs["pos"], pairs["neg_intra"], pairs["neg_inter"], patches["queries"],
        patches["distractors"], f"those of {folder}{shares}", is_published=not most,
    )  # fmt: skip


def draw_lists(split: str, sequences: Mapping[str, HPatchesSequence], seed: int = 0, most: int = 0) -> Lists:
    """Draw lists in the proportions of the benchmark's program, but with another generator; `most` of each kind (0: as
    many as the benchmark). A positive is a patch in two images of a sequence; its negatives pair it with another patch
    of that sequence, or of another one, in the second image. Retrieval takes patches of reference images with some
    contrast.
    """
    rng = np.random.default_rng(seed)
    counts = np.array([one.patches for one in sequences.values()])
    if counts.min() < 2:
        raise CairnError("A sequence has one patch alone: pairs that do not match need two.")
    number = most or PAIRS
    of = rng.integers(len(counts), size=number)
    patch = _below(rng, counts[of])
    other = (patch + 1 + _below(rng, counts[of] - 1)) % counts[of]
    image = rng.integers(_DRAWN_IMAGES, size=number)
    second = (image + rng.integers(1, _DRAWN_IMAGES, size=number)) % _DRAWN_IMAGES
    elsewhere = (of + rng.integers(1, len(counts), size=number)) % len(counts)
    first = ListedPatches(of, image, patch)
    queries, distractors = _draw_retrieval(rng, sequences, most)
    return Lists(
        split,
        tuple(sequences),
        (first, ListedPatches(of, second, patch)),
        (first, ListedPatches(of, second, other)),
        (first, ListedPatches(elsewhere, second, _below(rng, counts[elsewhere]))),
        queries,
        distractors,
        f"drawn here with the seed {seed}",
        is_published=False,
    )


def _draw_retrieval(
    rng: np.random.Generator, sequences: Mapping[str, HPatchesSequence], most: int
) -> tuple[ListedPatches, ListedPatches]:
    candidates = []
    for place, sequence in enumerate(sequences.values()):
        contrast = sequence.read("ref").std(axis=(1, 2))
        numbers = np.flatnonzero(contrast > _CONTRAST)
        candidates.append(np.stack([np.full(len(numbers), place), numbers], axis=1))
    drawn = rng.permutation(np.concatenate(candidates).astype(np.int64))
    number = min(most or QUERIES, QUERIES, len(drawn) // 3)
    parts = drawn[:number], drawn[number : number + DISTRACTORS]
    queries, distractors = (ListedPatches(part[:, 0], np.zeros(len(part), np.int64), part[:, 1]) for part in parts)
    return queries, distractors


def _below(rng: np.random.Generator, limits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Random integers (M,), each from 0 to below its limit."""
    return rng.integers(limits)


def _empty() -> ListedPatches:
    none = np.zeros(0, np.int64)
    return ListedPatches(none, none, none)


def _tasks_folder(tasks: Path) -> Path:
    """The folder of the lists: `tasks` itself, or a folder in the benchmark's repository."""
    tasks = Path(tasks)
    if not tasks.is_dir():
        raise CairnError(f"There is no folder {tasks} of the benchmark's tasks.")
    return tasks / "tasks" if (tasks / "tasks").is_dir() else tasks


def _read_pairs(path: Path, sequences: Mapping[str, HPatchesSequence], most: int) -> Pairs:
    rows = _read(path, ("s1", "t1", "idx1", "s2", "t2", "idx2"), (0, 3), sequences, most)
    first, second = (ListedPatches(*rows[:, start : start + 3].T) for start in (0, 3))
    for patches in (first, second):
        _check(path, patches, sequences)
    return first, second


def _read_patches(path: Path, sequences: Mapping[str, HPatchesSequence], most: int) -> ListedPatches:
    rows = _read(path, ("s", "idx"), (0,), sequences, most)
    patches = ListedPatches(rows[:, 0], np.zeros(len(rows), np.int64), rows[:, 1])
    _check(path, patches, sequences)
    return patches


def _read(
    path: Path, header: tuple[str, ...], named: tuple[int, ...], sequences: Mapping[str, HPatchesSequence], most: int
) -> NDArray[np.int64]:
    """Rows (M, columns) of a list, with sequences as indices."""
    if not path.is_file():
        raise CairnError(f"There is no list {path}: take it from the benchmark's folder tasks, unpacked.")
    place = {name: number for number, name in enumerate(sequences)}
    kinds = [place.__getitem__ if column in named else int for column in range(len(header))]

    def parsed() -> Iterator[list[int]]:
        for line, cells in open_csv(path, ",").records():
            if line == 1 and tuple(cells) == header:
                continue
            try:
                yield [kind(cell) for kind, cell in zip(kinds, cells, strict=True)]
            except (ValueError, KeyError):
                raise CairnError(
                    f"{path}, line {line}: expected {','.join(header)} of sequences of the split, found "
                    f"{shown(','.join(cells))}."
                ) from None
            if most and line > most:
                return

    rows = np.array(list(parsed()), np.int64)
    if not rows.size:
        raise CairnError(f"{path} lists nothing: take it from the benchmark again.")
    return rows[: most or None]


def _check(path: Path, patches: ListedPatches, sequences: Mapping[str, HPatchesSequence]) -> None:
    """Refuse missing patches."""
    counts = np.array([one.patches for one in sequences.values()])[patches.sequences]
    wrong = (patches.numbers < 0) | (patches.numbers >= counts) | (patches.images < 0) | (patches.images > 5)
    if wrong.any():
        row = int(wrong.argmax())
        name = list(sequences)[int(patches.sequences[row])]
        raise CairnError(
            f"{path} names patch {patches.numbers[row]} of image {patches.images[row]} of {name}, which has "
            f"{counts[row]} patches in 6 images: it is not the list of this set."
        )
