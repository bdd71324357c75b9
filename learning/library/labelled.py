"""Common first and last steps of learning from labelled patches."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from index.errors import CairnError
from learning.library.array_patches import are_arrays, source_of_arrays
from learning.library.paths import AnyPath, as_path, as_paths
from learning.patches.sources import PatchFolder, open_sources
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, check_model_path, save_model


def output_file(out: AnyPath | None) -> Path | None:
    """Check the output path of a descriptor before any work; raises CairnError if it cannot be written."""
    if out is None:
        return None
    file = as_path(out, "out")
    check_model_path(file)
    return file


@contextmanager
def work_folder(work: Path | None, out: Path | None) -> Iterator[Path]:
    """Folder of intermediate results: `work`, one next to the file, or a temporary one."""
    if work is None and out is None:
        with tempfile.TemporaryDirectory(prefix="cairn-learning-") as scratch:
            yield Path(scratch)
    else:
        yield work or (out or Path()).with_suffix(".learning")


def open_labelled(source: Any, *, pairs: int = 0, seed: int = 0, pair_file: str | None = None) -> list[PatchFolder]:
    """Open labelled patches, of folders or arrays, with at most `pairs` random training pairs of each (0: all)."""
    if are_arrays(source):
        if pair_file is not None:
            raise CairnError("{--pair-file} is of folders of patches: arrays have none.")
        return [source_of_arrays(source, pairs=pairs, seed=seed)]
    return open_sources(as_paths(source, "source"), pairs=pairs, seed=seed, pair_file=pair_file)


def write_learnt(model: LearntModel, out: Path | None, paper: str | None) -> tuple[LearntDescriptor, dict[str, Any]]:
    """Write a learnt model to `out`, if set; return the beginning of reports: its file, name and fingerprint."""
    if paper is not None:
        model.provenance["as_published"] = paper
    if out is not None:
        save_model(out, model)
    described = LearntDescriptor(model)
    file = str(out) if out is not None else None
    return described, {"descriptor": file, "name": described.name, "fingerprint": described.fingerprint}
