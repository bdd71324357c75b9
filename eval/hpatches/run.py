"""Measurement of HPatches."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.hpatches.lists import choose_sequences, draw_lists, read_lists
from eval.hpatches.options import HPatchesChoices
from eval.hpatches.release import HPatchesSequence as PatchSequence
from eval.hpatches.release import find_sequences
from eval.hpatches.rows import PatchRows
from eval.hpatches.tasks import TASKS, Matching, PatchVerification, Retrieval, match_images, retrieve, verify
from index.attributes import some_of
from index.errors import CairnError
from index.progress import Progress, silent
from index.text import one_of

Describe = Callable[[dict[str, PatchSequence]], PatchRows]
"""Returns the rows of some sequences: a partial of `describe_sequences` or `read_sequences`."""


@dataclass(frozen=True)
class HPatchesReport:
    """Figures of one descriptor; None for a task not requested."""

    descriptor: str
    dim: int
    bytes: int
    distance: str
    split: str
    sequences: int
    patches: int
    lists: str
    is_published: bool
    verification: PatchVerification | None = None
    matching: Matching | None = None
    retrieval: Retrieval | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the object that `cairn evaluate hpatches --json` prints."""
        tasks = {name: getattr(self, name) for name in TASKS}
        return {
            **{name: None if result is None else _rounded(result.as_json()) for name, result in tasks.items()},
            **some_of(self, "descriptor", "dim", "bytes", "distance", "split", "sequences", "patches", "lists"),
            "comparable_with_published": self.is_published,
            "seconds": {step: round(value, 3) for step, value in self.seconds.items()},
        }


def evaluate_hpatches(
    root: Path,
    describe: Describe,
    choices: HPatchesChoices | None = None,
    progress: Progress = silent,
) -> HPatchesReport:
    """Measure descriptions of patches by the tasks of HPatches; `describe` returns the rows of the sequences.

    Without the benchmark's own lists (`tasks`), lists are drawn, and figures are not comparable with published ones.
    """
    choices = choices or HPatchesChoices()
    wanted = choices.task or TASKS
    if strange := [name for name in wanted if name not in TASKS]:
        raise CairnError(f"HPatches has no task {strange[0]!r}: choose {one_of(TASKS)}.")
    name, sequences = choose_sequences(find_sequences(root), choices.split, choices.tasks)
    if choices.tasks is not None:
        lists = read_lists(choices.tasks, name, sequences, set(wanted), choices.max_pairs)
    else:
        lists = draw_lists(name, sequences, choices.seed, choices.max_pairs)
    if "retrieval" in wanted and not (len(lists.queries) and len(lists.distractors)):
        raise CairnError(
            "There are too few patches with some contrast to retrieve among: leave out the task retrieval."
        )
    seconds = {}
    start = time.perf_counter()
    rows = describe(sequences)
    seconds["describe"] = time.perf_counter() - start
    results: dict[str, Any] = {}
    for task, measure in zip(TASKS, (verify, match_images, retrieve), strict=True):
        if task in wanted:
            start = time.perf_counter()
            results[task] = measure(rows, lists, progress)
            seconds[task] = time.perf_counter() - start
    return HPatchesReport(
        rows.name, rows.dim, rows.bytes, rows.distance, name, len(sequences), len(rows), lists.source,
        lists.is_published, **results, seconds=seconds,
    )  # fmt: skip


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return round(value, 6) if isinstance(value, float) else value
