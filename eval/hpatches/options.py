"""Options of measurements on HPatches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from index.options.declaration import Option, option_of
from retrieval.collection.options import CollectionOptions


@dataclass(frozen=True)
class HPatchesChoices:
    """Options of tasks and pairs. See `eval.hpatches.run.evaluate_hpatches`."""

    tasks: Annotated[
        Path | None,
        Option(
            "The benchmark's folder tasks, with its splits and lists of pairs. Without it pairs are drawn here, "
            "and figures do not compare with published ones."
        ),
    ] = None
    split: Annotated[
        str | None, Option("a, b, c, full, illum or view; if it is left out, a with --tasks and full without.")
    ] = None
    task: Annotated[
        Sequence[str], Option("verification, matching or retrieval; may be repeated; all if it is left out.")
    ] = ()
    max_pairs: Annotated[
        int, Option("So many pairs of each kind and queries at most, to try things out; 0: all.", least=0)
    ] = 0
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
