"""What `cairn learn descriptor` does with labelled patches: learn, write the descriptor, and say what came of it."""

import csv
import io
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from index.arrays import save_bytes
from learning.commands.as_published import SIMONYAN14
from learning.commands.descriptor_options import ModelOptions, PatchOptions, RunOptions, TuningOptions, settle
from learning.convex.candidates import PoolOptions
from learning.convex.descriptor import RING_DISTANCES, LearningOptions, Learnt, learn_descriptor
from learning.convex.projection import ProjectionOptions
from learning.convex.records import TABLE, Record
from learning.convex.ring_selection import SelectionOptions
from learning.convex.tried import check_tests
from learning.patches.augmentation import AugmentationOptions
from learning.patches.sources import Source, open_sources
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.options import cores
from retrieval.descriptors.learnt import LearntDescriptor, save_model
from retrieval.descriptors.pooling import ChannelOptions

TESTED_TABLE = "tested.csv"
"""Table, in the folder of a run, of the models tried and their errors on test pairs."""

_TITLES = {
    "psi-train": "Ring distances",
    "psi-validation": "… for validation",
    "pooling": "Pooling regions",
    "describe": "Describing",
    "projection": "Projections",
    "whitening": "Whitenings",
    "test": "Testing",
}


def learn_from_patches(
    sources: list[Path],
    out: Path,
    model: ModelOptions,
    data: PatchOptions,
    tuning: TuningOptions,
    run: RunOptions,
    *,
    as_published: bool = False,
    quiet: bool,
    json: bool,
) -> None:
    """Learn a descriptor from folders of labelled patches, write it, and print what came of it."""
    began = perf_counter()
    settled = settle(model, tuning, 80, ChannelOptions())
    options = LearningOptions(
        stage=settled.stage,
        base=settled.base,
        dim=settled.dim,
        max_pooled_dim=model.max_pooled_dim,
        hours=run.hours,
        channels=settled.channels,
        pool=PoolOptions(settled.channels.patch_size, tuning.pool_step, symmetric=tuning.symmetric),
        selection=SelectionOptions(
            balanced=tuning.balanced, keep=tuning.keep, seed=run.seed, **tuning.grid(projections=False)
        ),
        projection=ProjectionOptions(norm=settled.norm, seed=run.seed, **tuning.grid(projections=True)),
        augmentation=AugmentationOptions(copies=2 if data.augment is None else data.augment, seed=run.seed),
    )
    check_tests(data.test or ())
    opened = open_sources(sources, pairs=data.pairs, seed=run.seed)
    folder = run.work or out.with_suffix(".learning")
    with progress_bars(quiet or json, _TITLES) as tell:
        learnt = learn_descriptor(
            opened,
            folder,
            options,
            pooling=settled.pooling,
            tests=data.test or (),
            workers=run.workers or cores(),
            progress=tell,
        )
    final = learnt.projection or learnt.pooling
    assert final is not None
    learnt.model.provenance.update(_provenance(opened, options, learnt, run.seed))
    if as_published:
        learnt.model.provenance["as_published"] = SIMONYAN14
    if learnt.tested:
        _write_tested(folder / TESTED_TABLE, learnt)
    save_model(out, learnt.model)
    if run.work is None:
        shutil.rmtree(folder / RING_DISTANCES, ignore_errors=True)
    described = LearntDescriptor(learnt.model)
    seconds = perf_counter() - began
    pooled = learnt.model.base_dim
    told = {
        "descriptor": str(out),
        "name": described.name,
        "fingerprint": described.fingerprint,
        "pooled_dim": pooled,
        "dim": described.dim,
        "rings": final.rings,
        "validation": {"fpr95": final.fpr95},
        "objective": [record.objective for record in (learnt.pooling, learnt.projection) if record is not None],
        "models": str(folder / TABLE),
        "tried": len(learnt.tried),
        "seconds": round(seconds, 3),
    }
    if learnt.tested:
        told |= {
            "test": {record.stage: _errors(learnt, record) for record in _chosen(learnt)},
            "tested": [{**asdict(one.record), "test": one.errors} for one in learnt.tested],
            "table": str(folder / TESTED_TABLE),
        }
    if json:
        print_json(told)
        return
    if learnt.pooling is not None:
        say(
            f"pooling      {learnt.pooling.rings} rings, {learnt.pooling.dim} dimensions, "
            f"{100 * learnt.pooling.fpr95:.2f}% false positives at 95% recall on validation pairs"
        )
    if learnt.projection is not None:
        say(
            f"{learnt.projection.stage:<12} {pooled} to {learnt.projection.dim} dimensions, "
            f"{100 * learnt.projection.fpr95:.2f}% false positives"
        )
    for record in _chosen(learnt) if learnt.tested else ():
        for name, error in _errors(learnt, record).items():
            say(f"{record.stage:<12} {100 * error:.2f}% false positives on {name}")
    say(f"{out}: {described.name}, {len(learnt.tried)} models tried in {seconds:.0f} s, listed in {folder / TABLE}")


def _chosen(learnt: Learnt) -> list[Record]:
    return [record for record in (learnt.pooling, learnt.projection) if record is not None]


def _errors(learnt: Learnt, record: Record) -> dict[str, float]:
    """Errors of a model on the test pairs, by folder."""
    return next(one.errors for one in learnt.tested if one.record == record)


def _write_tested(path: Path, learnt: Learnt) -> None:
    """Write a table (CSV) of all models tried: dimensions, and errors on validation and on test pairs."""
    names = list(learnt.tested[0].errors)
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(["stage", "dim", "rings", "mu", "gamma", "validation", *names, "chosen"])
    for one in learnt.tested:
        record = one.record
        settings = [record.stage, record.dim, record.rings, record.mu, record.gamma, record.fpr95]
        writer.writerow([*settings, *(one.errors[name] for name in names), int(record in _chosen(learnt))])
    save_bytes(path, lines.getvalue().encode())


def _provenance(sources: Sequence[Source], options: LearningOptions, learnt: Learnt, seed: int) -> dict[str, Any]:
    """Tell where a descriptor comes from, without what differs between two runs of the same request."""
    return {
        "sources": [source.describe() for source in sources],
        "options": asdict(options),
        "seed": seed,
        **{
            name: None if record is None else {key: value for key, value in asdict(record).items() if key != "seconds"}
            for name, record in (("pooling", learnt.pooling), ("projection", learnt.projection))
        },
    }
