"""Options that several of the measuring commands have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval.library.patch_options import PatchMeasurement
from retrieval.commands.console import progress_bars
from retrieval.commands.option_groups import shown_option
from retrieval.commands.options import Seed

if TYPE_CHECKING:
    from retrieval.descriptors.learnt import LearntModel

PatchFolder = Annotated[Path, typer.Argument(help="Folder of labelled patches, in the layout of PhotoTour.")]
PairFile = Annotated[str | None, shown_option(PatchMeasurement, "pairs")]
Picture = Annotated[Path, typer.Option(help="The picture to write: .png, .pdf or .svg.")]
Csv = Annotated[Path | None, typer.Option(help="Write the figures as a table (CSV) here, too.")]


@dataclass(frozen=True)
class CodeStudy:
    """Descriptors whose binary codes are measured by their length, and the pairs of patches to measure on."""

    folder: PatchFolder
    descriptor: Annotated[list[Path], typer.Option(help="A real-valued descriptor file (.npz); may be repeated.")]
    length: Annotated[
        list[int] | None,
        typer.Option(help="Length of the codes in bits; may be repeated; 64 to 1,024 if left out.", min=1),
    ] = None
    pairs: PairFile = None
    seed: Seed = 0

    def errors(self, quiet: bool) -> "Iterator[tuple[Path, LearntModel, tuple[list[int], list[float], float]]]":
        """Each descriptor with what `errors_of_codes` returns; all are read before the first is measured."""
        from eval.codes import LENGTHS, errors_of_codes
        from retrieval.descriptors.learnt import load_model

        lengths = sorted(set(self.length or LENGTHS))
        for path, model in [(path, load_model(path)) for path in self.descriptor]:
            with progress_bars(quiet, {"describe": path.stem}) as tell:
                yield path, model, errors_of_codes(self.folder, path, model, lengths, self.pairs, self.seed, tell)


def write_figures(path: Path | None, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as a table (CSV), if a file is requested."""
    from eval.csv_table import write_table

    if path is not None:
        write_table(path, rows)
