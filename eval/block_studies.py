"""Dependence of building-block descriptors on clipping, and on bits a dimension (Brown11, figures 13 and 14)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from index.errors import CairnError
from learning.blocks.pairs import BlockPairs, load_pairs
from learning.patches.phototour import PatchSet, default_pair_file
from learning.patches.sources import PatchFolder
from retrieval.descriptors.blocks.descriptor import Blocks, can_be_levels, clipped_to_unit, to_unit
from retrieval.descriptors.learnt import LearntDescriptor
from retrieval.descriptors.registry import find_descriptor

RATIOS = (1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 6.0)  # κ √D
BITS = (1, 2, 3, 4, 8)


def studies(
    names: Sequence[str], folders: Sequence[Path]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Measure descriptors of T- and S-blocks: false positives at 95% recall in percent, the mean over the sets, by κ √D
    (``unit``: not clipped), and by bits a dimension (``32``: real numbers). `names`: names or files of descriptors of
    T- and S-blocks without an embedding.
    """
    clipping: dict[str, dict[str, float]] = {}
    bits: dict[str, dict[str, float]] = {}
    every = {name: blocks_of(name) for name in names}  # read all first, so that an invalid one costs no time
    for name, blocks in every.items():
        errors = [study(blocks, pairs_to_test_on(folder, blocks.patch_size)) for folder in folders]
        for table, part in ((clipping, 0), (bits, 1)):
            table[name] = {key: float(np.mean([one[part][key] for one in errors])) for key in errors[0][part]}
    return clipping, bits


def blocks_of(name: str) -> Blocks:
    """Blocks with an S-block, by name or from a file."""
    descriptor = find_descriptor(name)
    base_model = descriptor.model.base_model if isinstance(descriptor, LearntDescriptor) else None
    if not isinstance(base_model, Blocks) or not can_be_levels(base_model):
        raise CairnError(f"{name} is no descriptor of T- and S-blocks without an embedding: choose one as T3h-S4-25.")
    return base_model


def pairs_to_test_on(folder: Path, size: int) -> BlockPairs:
    """The test pairs of a set."""
    patches = PatchSet.open(folder)
    pairs = patches.pairs(default_pair_file(patches))
    return load_pairs([PatchFolder(patches, pairs, pairs)], "train", size)


def study(blocks: Blocks, pairs: BlockPairs) -> tuple[dict[str, float], dict[str, float]]:
    """Errors by κ √D, and by bits a dimension, on one set."""
    pooled = pairs.pooled(blocks)
    root = pooled.shape[1] ** 0.5
    clipping = {f"{ratio}": 100 * pairs.error(clipped_to_unit(pooled, ratio / root)) for ratio in RATIOS}
    clipping["unit"] = 100 * pairs.error(to_unit(pooled))
    rows = blocks.normalised(pooled)
    bits = {f"{number}": 100 * pairs.error(replace(blocks, bits=number).levels(rows)) for number in BITS}
    bits["32"] = 100 * pairs.error(rows)
    return clipping, bits
