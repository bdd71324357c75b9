"""Learn a descriptor from labelled patches, and write its file."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from index.arrays import save_rows
from index.attributes import some_of
from index.progress import Progress
from learning.convex.candidates import PoolOptions
from learning.convex.descriptor import RING_DISTANCES, LearningOptions, Learnt, learn_descriptor
from learning.convex.projection import ProjectionOptions
from learning.convex.records import TABLE, Record
from learning.convex.ring_selection import SelectionOptions
from learning.convex.tried import check_tests
from learning.library.choices import ModelChoices, PatchChoices, RunChoices, TuningChoices, settle
from learning.library.labelled import write_learnt
from learning.library.new_descriptor import About, NewDescriptor
from learning.library.published import SIMONYAN14
from learning.patches.augmentation import AugmentationOptions
from learning.patches.sources import PatchFolder
from retrieval.descriptors.pooling import ChannelOptions

TESTED_TABLE = "tested.csv"
"""Table, in the folder of a run, of the models tried and their errors on test pairs."""

TITLES = {
    "psi-train": "Ring distances",
    "psi-validation": "… for validation",
    "pooling": "Pooling regions",
    "describe": "Describing",
    "projection": "Projections",
    "whitening": "Whitenings",
    "test": "Testing",
}
"""Titles of the steps."""


def learn_from_patches(
    sources: Sequence[PatchFolder],
    out: Path | None,
    model: ModelChoices,
    data: PatchChoices,
    tuning: TuningChoices,
    run: RunChoices,
    progress: Progress,
) -> NewDescriptor:
    """Learn a descriptor from labelled patches, and write it to `out`, if set."""
    began = perf_counter()
    settled = settle(model, tuning, LearningOptions.dim, ChannelOptions())
    options = LearningOptions(
        **some_of(settled, "stage", "base", "dim", "channels"),
        max_pooled_dim=model.max_pooled_dim,
        hours=run.hours,
        pool=PoolOptions(settled.channels.patch_size, tuning.pool_step, symmetric=tuning.symmetric),
        selection=SelectionOptions(
            balanced=tuning.balanced, keep=tuning.keep, seed=run.seed, **tuning.grid(projections=False)
        ),
        projection=ProjectionOptions(norm=settled.norm, seed=run.seed, **tuning.grid(projections=True)),
        augmentation=AugmentationOptions(
            copies=AugmentationOptions.copies if data.augment is None else data.augment, seed=run.seed
        ),
    )
    check_tests(data.test)
    learnt = learn_descriptor(
        sources,
        run.folder,
        options,
        pooling=settled.pooling,
        tests=data.test,
        workers=run.workers,
        progress=progress,
    )
    final = learnt.projection or learnt.pooling
    assert final is not None
    learnt.model.provenance.update(_provenance(sources, options, learnt, run.seed))
    if learnt.tested:
        _write_tested(run.folder / TESTED_TABLE, learnt)
    described, report = write_learnt(learnt.model, out, SIMONYAN14 if run.as_published else None)
    if not run.keeps:
        shutil.rmtree(run.folder / RING_DISTANCES, ignore_errors=True)
    report |= {
        "pooled_dim": learnt.model.base_dim,
        "dim": described.dim,
        "rings": final.rings,
        "validation": {"fpr95": final.fpr95},
        "objective": [record.objective for record in (learnt.pooling, learnt.projection) if record is not None],
        "models": run.named(TABLE),
        "tried": len(learnt.tried),
        "seconds": round(perf_counter() - began, 3),
    }
    if learnt.tested:
        report |= {
            "test": {record.stage: _errors(learnt, record) for record in _chosen_records(learnt)},
            "tested": [{**asdict(one.record), "test": one.errors} for one in learnt.tested],
            "table": run.named(TESTED_TABLE),
        }
    return NewDescriptor(described, out, About(report, learnt.pooling, learnt.projection, learnt.tried))


def _chosen_records(learnt: Learnt) -> list[Record]:
    return [record for record in (learnt.pooling, learnt.projection) if record is not None]


def _errors(learnt: Learnt, record: Record) -> dict[str, float]:
    """Errors of a model on the test pairs, by folder."""
    return next(one.errors for one in learnt.tested if one.record == record)


def _write_tested(path: Path, learnt: Learnt) -> None:
    """Write a table (CSV) of all models tried: dimensions, and errors on validation and on test pairs."""
    names = list(learnt.tested[0].errors)
    rows: list[list[object]] = [["stage", "dim", "rings", "mu", "gamma", "validation", *names, "chosen"]]
    for one in learnt.tested:
        record = one.record
        settings = [record.stage, record.dim, record.rings, record.mu, record.gamma, record.fpr95]
        rows.append([*settings, *(one.errors[name] for name in names), int(record in _chosen_records(learnt))])
    save_rows(path, rows)


def _provenance(sources: Sequence[PatchFolder], options: LearningOptions, learnt: Learnt, seed: int) -> dict[str, Any]:
    return {
        "sources": [source.describe() for source in sources],
        "options": asdict(options),
        "seed": seed,
        **{
            name: None if record is None else {key: value for key, value in asdict(record).items() if key != "seconds"}
            for name, record in (("pooling", learnt.pooling), ("projection", learnt.projection))
        },
    }
