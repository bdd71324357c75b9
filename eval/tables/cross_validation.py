"""Cross-validated gain of learning: a descriptor is learnt for each fold, and measured in it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from eval.tables.folds import Fold, Scene, SceneDifference, compare, queries_of
from eval.tables.retrieval import Measurement, MeasurementResult, measure
from index.arrays import fingerprint, hash_file
from index.progress import Progress, silent
from learning.latent.descriptor import VERSION, UnlabelledOptions, learn_unlabelled
from learning.mining.matches import MinedMatches
from learning.mining.mining import MiningOptions, mine_matches
from learning.mining.photo_source import PhotoSource
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.learnt import save_model
from retrieval.library.opening import make


@dataclass(frozen=True)
class Recipe:
    """A method of learning a descriptor from photos."""

    label: str
    learning: UnlabelledOptions
    mining: MiningOptions


Learn = Callable[[Recipe, Fold, Path, int, Progress], Path]
"""Learns from the photos of a fold, with a work folder and a number of processes; returns the descriptor file."""


def learn_fold(recipe: Recipe, fold: Fold, work: Path, workers: int, progress: Progress) -> Path:
    """Learn a descriptor from the training photos of a fold, like `cairn learn descriptor`, unless already done."""
    photos = fingerprint({}, {"photos": sorted(hash_file(path) for path in fold.training)})[:16]
    mined_key = fingerprint({}, {"photos": photos, "mining": asdict(recipe.mining)})[:16]
    key = fingerprint({}, {"mined": mined_key, "learning": asdict(recipe.learning), "version": VERSION})[:16]
    file = work / "learnt" / f"{key}.npz"
    if file.is_file():
        return file
    for folder in ("training", "mined", "learnt"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    mined = work / "mined" / f"{mined_key}.npz"
    if not mined.is_file():
        collection = _training_collection(fold, work / "training" / f"{photos}.cairn", workers, progress)
        source = PhotoSource.open(collection)
        try:
            mine_matches(source, mined, recipe.mining, workers=workers, progress=progress)
        finally:
            assert source.collection is not None
            source.collection.catalogue.close()
    learnt = learn_unlabelled(
        MinedMatches.open(mined), work / "learnt" / key, recipe.learning, workers=workers, progress=progress
    )
    save_model(file, learnt.model)
    return file


def _training_collection(fold: Fold, folder: Path, workers: int, progress: Progress) -> Path:
    """Index the training photos of a fold, unless already done."""
    if not folder.is_dir():
        making = folder.with_suffix(".unfinished")
        with make(making, CollectionOptions(signature="none")) as collection:
            collection.add(fold.training, workers=workers, progress=progress)
        making.rename(folder)
    return folder


@dataclass(frozen=True)
class RecipeMeasure:
    """Gain of a recipe with one search method on one set, on the queries of the measured folds."""

    recipe: str
    photos: str  # name of the set
    engine: str
    reference: float  # mAP of these queries with the reference descriptor
    learnt: float  # mAP of these queries
    difference: SceneDifference  # over scenes


def cross_validate(
    recipes: Sequence[Recipe],
    folds: Sequence[Fold],
    cells: Sequence[Measurement],
    work: Path,
    *,
    learn: Learn = learn_fold,
    workers: int = 1,
    progress: Progress = silent,
) -> list[RecipeMeasure]:
    """Learn from some or all folds, measure their queries, and compare with the reference, by recipe, then by cell."""
    learnt = [(recipe, fold, learn(recipe, fold, work, workers, progress)) for recipe in recipes for fold in folds]
    tested = [scene for fold in folds for scene in fold.tested]
    wanted = [
        replace(cell, names=queries_of(fold.tested, cell.photos), options=replace(cell.options, descriptor=str(file)))
        for _, fold, file in learnt
        for cell in cells
    ]
    # All at once: regions are detected once for all descriptors.
    some = [replace(cell, names=queries_of(tested, cell.photos)) for cell in cells]
    results = measure([*some, *wanted], work, workers=workers, progress=progress)
    known, learnt_results = results[: len(cells)], iter(results[len(cells) :])
    scores: dict[tuple[str, int], dict[str, float]] = {}
    for recipe, _, _ in learnt:
        for place in range(len(cells)):
            scores.setdefault((recipe.label, place), {}).update(next(learnt_results).scores)
    return [
        _measured(recipe.label, cell, tested, known[place], scores[recipe.label, place])
        for recipe in recipes
        for place, cell in enumerate(cells)
        if queries_of(tested, cell.photos)
    ]


def _measured(
    recipe: str, cell: Measurement, tested: Sequence[Scene], known: MeasurementResult, scores: dict[str, float]
) -> RecipeMeasure:
    """Combine the measurements of a recipe with one search method."""
    names = sorted(queries_of(tested, cell.photos))
    reference, learnt = (MeasurementResult({name: one[name] for name in names}).mean for one in (known.scores, scores))
    difference = compare(tested, cell.photos, scores, known.scores)
    return RecipeMeasure(recipe, cell.photos.name, cell.engine, reference, learnt, difference)
