"""Learn a descriptor from photos without labels: mine, learn, and compare with rootSIFT."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from index.arrays import fingerprint
from index.attributes import some_of
from index.errors import CairnError
from index.progress import Progress
from learning.convex.candidates import PoolOptions
from learning.convex.records import TABLE
from learning.convex.stages import check_pooling
from learning.convex.whitening import STAGE
from learning.judge.conclusion import Conclusion, judge_searches
from learning.judge.judging import OTHER, JudgeOptions
from learning.judge.judging import TITLES as JUDGING
from learning.latent.descriptor import SCRATCH, Unlabelled, UnlabelledOptions, learn_unlabelled, metric_options
from learning.latent.models import LatentRecord
from learning.latent.verdict import compare
from learning.library.choices import ModelChoices, PhotoChoices, RunChoices, TuningChoices, settle
from learning.library.labelled import write_learnt
from learning.library.new_descriptor import About, NewDescriptor
from learning.library.published import SIMONYAN14, published_mining
from learning.mining.matches import MinedMatches
from learning.mining.mining import FEATURES, RENDERED, MiningOptions, TooLittle, mine_matches
from learning.mining.photo_source import PhotoSource
from retrieval.descriptors.bases import NESTED
from retrieval.descriptors.learnt import LearntDescriptor, Pooling
from retrieval.descriptors.nested import EXTENT
from retrieval.descriptors.sift import Sift
from retrieval.photos.listing import list_photos
from retrieval.photos.options import ImageOptions

MINED = "mined"
"""Subfolder of a run's folder for matches mined from a collection."""

MINING = "mining"
"""Subfolder of that for intermediate results of mining."""

JUDGED = "judged"
"""Subfolder of a run's folder for the collections by which a descriptor is judged."""

STEPS = {
    "features": "Features",
    "views": "Views",
    "pairs": "Image pairs",
    "patches": "Patches",
    "describe": "Describing",
    "psi": "Ring distances",
    "pooling": "Pooling regions",
    "projection": "Projections",
    STAGE: "Whitenings",
}
"""Titles of the steps of mining and learning."""

TITLES = {**STEPS, **JUDGING}
"""These titles, and those of the steps of judging."""


def usual_geometry(stage: str) -> str:
    """Return the default source of geometry, one of `mining.GEOMETRIES`."""
    return "views" if stage == STAGE else "homography"


def learn_from_photos(
    source: Path,
    out: Path | None,
    model: ModelChoices,
    data: PhotoChoices,
    tuning: TuningChoices,
    run: RunChoices,
    progress: Progress,
    *,
    catalogue: str | None,
) -> NewDescriptor:
    """Learn a descriptor from a collection, or from a file of matches, and write it to `out`, if set."""
    began = perf_counter()
    options, pooling = _resolve(model, data, tuning, run)
    if data.report is not None:
        from learning.reports.report import check_report

        check_report(data.report)
    photos = [path for _, path in list_photos([data.photos])] if data.photos is not None else []
    if (catalogue or data.geometry) and source.suffix == ".npz":
        raise CairnError("{--catalogue} and {--geometry} are for a collection: take them away.")
    source_photos = PhotoSource.open(source, catalogue=catalogue) if source.suffix != ".npz" else None
    folder = run.folder
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        file: Path = source
        failed: list[dict[str, str]] = []
        if source_photos is not None:
            mining = MiningOptions(geometry=data.geometry or usual_geometry(options.stage), seed=options.seed)
            if options.base == NESTED:
                mining = replace(mining, extent=EXTENT)
            if run.as_published:
                mining = published_mining(mining)
            file, failed = _mine(source_photos, folder / MINED, mining, run.workers, progress)
        matches = MinedMatches.open(file)
        learnt = learn_unlabelled(matches, folder, options, pooling=pooling, workers=run.workers, progress=progress)
        verdict = _judge(source_photos, matches, learnt, data, options, run, progress)
    except CairnError as error:
        if new and not (folder / TABLE).is_file():  # nothing to resume
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, TooLittle):
            raise CairnError(f"{error} Until then stay with rootsift.") from error
        raise
    finally:
        if source_photos is not None and source_photos.collection is not None:
            source_photos.collection.catalogue.close()
    learnt.model.provenance.update(_provenance(matches, options, learnt, verdict))
    described, report = write_learnt(learnt.model, out, SIMONYAN14 if run.as_published else None)
    if data.report is not None:
        if source_photos is not None:
            photos = [*source_photos.paths, *sorted((folder / MINED / MINING / RENDERED).glob("*.jpg"))]
        _write_report(data.report, photos, matches, learnt, verdict)
    _clear(folder, run, mined=source_photos is not None)
    report |= {**_report(learnt, described.dim, verdict), "models": run.named(TABLE), "tried": len(learnt.tried)}
    report |= {"failed": failed, "seconds": round(perf_counter() - began, 3)}
    models = report, learnt.pooling, learnt.projection, learnt.tried
    return NewDescriptor(described, out, About(*models, verdict.outcome, verdict.sentence, verdict.details))


def _report(learnt: Unlabelled, dim: int, verdict: Conclusion) -> dict[str, Any]:
    final = learnt.projection or learnt.pooling
    assert final is not None
    return {
        "pooled_dim": learnt.model.base_dim,
        "dim": dim,
        "rings": final.rings,
        "validation": {"recall": round(final.validation, 6)},
        "objective": [entry.objective for entry in learnt.history],
        "history": [asdict(entry) for entry in learnt.history],
        "image_pairs": {"training": learnt.training, "validation": len(verdict.nearest.learnt.recall)},
        "verdict": verdict.as_json(),
        "retrieval": verdict.retrieval_json(),
    }


def _resolve(
    model: ModelChoices, data: PhotoChoices, tuning: TuningChoices, run: RunChoices
) -> tuple[UnlabelledOptions, Pooling | None]:
    """Resolve defaults, and read the pooling regions to project, if any."""
    usual = UnlabelledOptions()
    settled = settle(model, tuning, 128, usual.channels, whitens=data.rounds == PhotoChoices.rounds)
    if settled.stage == STAGE and data.rounds != PhotoChoices.rounds:
        raise CairnError("{--rounds} is of looking for negatives: a whitening has none.")
    if settled.stage == STAGE and data.negatives is not None:
        raise CairnError("{--negatives} are of pooling regions and projections: a whitening has none.")
    grids = tuning.grid(projections=False), tuning.grid(projections=True)
    options = UnlabelledOptions(
        **some_of(settled, "stage", "base", "dim", "channels"),
        max_pooled_dim=model.max_pooled_dim,
        hours=run.hours,
        shares=tuple(data.share) if data.share else usual.shares,
        rounds=data.rounds,
        pool=PoolOptions(settled.channels.patch_size, tuning.pool_step, symmetric=tuning.symmetric),
        selection=replace(usual.selection, balanced=tuning.balanced, keep=tuning.keep, seed=run.seed, **grids[0]),
        projection=replace(metric_options(settled.norm, run.seed), **grids[1]),
        seed=run.seed,
        **data.counts,
    )
    check_pooling(options.stage, options.base, settled.pooling)
    return options, settled.pooling


def _judge(
    source: PhotoSource | None,
    matches: MinedMatches,
    learnt: Unlabelled,
    data: PhotoChoices,
    options: UnlabelledOptions,
    run: RunChoices,
    progress: Progress,
) -> Conclusion:
    """Compare the model with rootSIFT, by nearest neighbours and, unless disabled, by searches."""
    described, usual = LearntDescriptor(learnt.model), Sift(root=True)
    nearest = compare(learnt.held, described, usual, workers=run.workers, seed=options.seed)
    if not data.judge:
        return Conclusion(nearest, None, "--no-judge leaves it out")
    staged = run.folder / MINED / MINING / FEATURES
    judging = JudgeOptions(seed=options.seed, rival=data.rival or OTHER, staged=staged)
    searches = judge_searches(
        source,
        matches,
        learnt.model,
        run.folder / JUDGED,
        judging,
        held_out=options.held_out,
        workers=run.workers,
        progress=progress,
    )
    return Conclusion(nearest, *searches)


def _clear(folder: Path, run: RunChoices, *, mined: bool) -> None:
    """Remove intermediate results from the folder of a run, except those to keep."""
    shutil.rmtree(folder / MINED / MINING, ignore_errors=True)
    if not run.keeps:
        shutil.rmtree(folder / SCRATCH, ignore_errors=True)
        if mined:
            shutil.rmtree(folder / MINED, ignore_errors=True)
            shutil.rmtree(folder / JUDGED, ignore_errors=True)


def _mine(
    source: PhotoSource, folder: Path, options: MiningOptions, workers: int, progress: Progress
) -> tuple[Path, list[dict[str, str]]]:
    """Mine the photos of a collection, unless already done; return the file, and the unusable photos."""
    assert source.collection is not None
    own = source.collection.options
    mining = replace(options, features=own.features, image=own.image)
    photos = [(str(path), _state(path)) for path in source.paths]
    file = folder / f"{fingerprint({}, {'options': mining, 'photos': photos})[:16]}.npz"
    folder.mkdir(exist_ok=True)
    failed = []
    if not file.is_file():
        # Kept until the end: the judge uses the features.
        failed = mine_matches(source, file, mining, work=folder / MINING, workers=workers, progress=progress).failed
    return file, failed


def _state(path: Path) -> tuple[int, int] | None:
    """Size and time of a file; None if it cannot be read, which mining reports."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _provenance(
    matches: MinedMatches, options: UnlabelledOptions, learnt: Unlabelled, verdict: Conclusion
) -> dict[str, Any]:
    def report_of(record: LatentRecord | None) -> dict[str, Any] | None:
        if record is None:
            return None
        return {key: value for key, value in asdict(record).items() if key not in ("seconds", "history")}

    return {
        "matches": {
            "source": matches.meta.get("source"),
            "proposals": matches.meta.get("proposals"),
            "options": matches.meta.get("options"),
            "measurement_scale": matches.meta.get("measurement_scale"),
            "counts": matches.meta.get("counts"),
            "fingerprint": matches.fingerprint,
        },
        "options": asdict(options),
        "seed": options.seed,
        "pooling": report_of(learnt.pooling),
        "projection": report_of(learnt.projection),
        "verdict": verdict.as_json(),
        "retrieval": verdict.retrieval.as_json() if verdict.retrieval is not None else None,
    }


def _write_report(
    path: Path, photos: Sequence[Path], matches: MinedMatches, learnt: Unlabelled, verdict: Conclusion
) -> None:
    from learning.reports.closeup import find_closeups
    from learning.reports.report import write_report

    meta = matches.meta
    counts = meta.get("counts", {})
    options = meta.get("options", {})
    image, features = options.get("image", {}), options.get("features", {})
    chosen = {record.key for record in (learnt.pooling, learnt.projection) if record is not None}
    facts = {
        "Photos": f"{meta.get('source')}: {counts.get('photos', 0):,} in image pairs that overlap"
        + (", half of them rendered views of the others" if meta.get("proposals") == "views" else ""),
        "Image pairs": f"{meta.get('image_pairs_tried', 0):,} tried ({meta.get('proposals')}), {len(matches.pairs):,} "
        f"kept; {learnt.training:,} to learn from, {len(verdict.nearest.learnt.recall):,} held out",
        "Features": f"{matches.features:,} with a match, {counts.get('positives', 0):,} positives, "
        f"{counts.get('ambiguous', 0):,} ambiguous, {counts.get('negatives', 0):,} negatives",
        "Regions": f"{features.get('regions', {}).get('detector')}, measurement scale {meta.get('measurement_scale')}, "
        f"patches {matches.extent:g} times as large, {'upright' if features.get('upright') else 'rotated'}",
        "Descriptor": f"{learnt.model.name}, {LearntDescriptor(learnt.model).dim} dimensions",
        "Comparison": "\n".join(verdict.details),
    }
    rows = [
        {
            "stage": record.stage,
            "round": record.round + 1,
            "share": record.share,
            **(
                {"shrinkage": record.mu, "dim": record.dim}
                if record.stage == STAGE
                else {"mu": record.mu, "gamma": record.gamma, "dim": record.dim, "recall": record.recall}
            ),
            "validation": record.validation or None,  # not measured for models that are too large
            "chosen": record.key in chosen,
        }
        for record in learnt.tried
    ]
    closeups = find_closeups(
        matches,
        photos,
        float(meta.get("measurement_scale", 1)),
        ImageOptions(**{key: value for key, value in image.items() if key in ("max_side", "max_pixels")}),
    )
    write_report(
        path,
        title=f"A descriptor learnt from {meta.get('source')}",
        verdict=verdict.sentence,
        facts=facts,
        model=learnt.model,
        history=learnt.history,
        tried=rows,
        closeups=closeups,
    )
