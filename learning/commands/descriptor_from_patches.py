"""What `cairn learn descriptor` does with labelled patches: learn, write the descriptor, and say what came of it."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from learning.commands.descriptor_options import ModelOptions, PatchOptions, RunOptions, TuningOptions, settle
from learning.convex.candidates import PoolOptions
from learning.convex.descriptor import RING_DISTANCES, LearningOptions, Learnt, learn_descriptor
from learning.convex.projection import ProjectionOptions
from learning.convex.records import TABLE
from learning.convex.ring_selection import SelectionOptions
from learning.patches.augmentation import AugmentationOptions
from learning.patches.sources import Source, open_sources
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.options import cores
from retrieval.descriptors.learnt import LearntDescriptor, save_model
from retrieval.descriptors.pooling import ChannelOptions

_TITLES = {
    "psi-train": "Ring distances",
    "psi-validation": "… for validation",
    "pooling": "Pooling regions",
    "describe": "Describing",
    "projection": "Projections",
    "whitening": "Whitenings",
}


def learn_from_patches(
    sources: list[Path],
    out: Path,
    model: ModelOptions,
    data: PatchOptions,
    tuning: TuningOptions,
    run: RunOptions,
    *,
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
        pool=PoolOptions(step=tuning.pool_step, symmetric=tuning.symmetric),
        selection=SelectionOptions(balanced=tuning.balanced, keep=tuning.keep, seed=run.seed),
        projection=ProjectionOptions(norm=settled.norm, seed=run.seed),
        augmentation=AugmentationOptions(copies=2 if data.augment is None else data.augment, seed=run.seed),
    )
    opened = open_sources(sources, pairs=data.pairs, seed=run.seed)
    folder = run.work or out.with_suffix(".learning")
    with progress_bars(quiet or json, _TITLES) as tell:
        learnt = learn_descriptor(
            opened, folder, options, pooling=settled.pooling, workers=run.workers or cores(), progress=tell
        )
    final = learnt.projection or learnt.pooling
    assert final is not None
    learnt.model.provenance.update(_provenance(opened, options, learnt, run.seed))
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
    say(f"{out}: {described.name}, {len(learnt.tried)} models tried in {seconds:.0f} s, listed in {folder / TABLE}")


def _provenance(sources: Sequence[Source], options: LearningOptions, learnt: Learnt, seed: int) -> dict[str, Any]:
    """Tell where a descriptor comes from, without what differs between two runs of the same request."""
    return {
        "sources": [
            {
                "name": source.patches.folder.resolve().name,
                "fingerprint": source.patches.fingerprint,
                "train": len(source.train),
                "validation": len(source.validation),
            }
            for source in sources
        ],
        "options": asdict(options),
        "seed": seed,
        **{
            name: None if record is None else {key: value for key, value in asdict(record).items() if key != "seconds"}
            for name, record in (("pooling", learnt.pooling), ("projection", learnt.projection))
        },
    }
