"""Command: evaluate patches."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

import typer

from eval.commands.options import PatchFolder
from eval.library.patch_options import PatchMeasurement
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, grouped, shown_option
from retrieval.commands.options import Json, Quiet

if TYPE_CHECKING:
    from eval.descriptions import Descriptions
    from retrieval.descriptors.contract import Descriptor as Describer

DEFAULT = "rootsift"
Binary = Annotated[bool, shown_option(PatchMeasurement, "binary")]
MaxPairs = Annotated[int, shown_option(PatchMeasurement, "max_pairs")]


@grouped
def patches(
    *,
    folder: PatchFolder,
    descriptor: Annotated[str, shown_option(CollectionOptions, "descriptor", panel="")] = DEFAULT,
    descriptions: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a descriptor, rows of numbers (.npy, .npz, .csv) that describe all patches of the folder, "
            "in their order."
        ),
    ] = None,
    options: Annotated[dict[str, Any], OptionsOf(PatchMeasurement)],
    roc: Annotated[Path | None, typer.Option(help="Draw the ROC curve here: .png, .pdf or .svg.")] = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Print the false positive rate of a descriptor at 95% recall on labelled pairs of patches."""
    from eval.library.patches import TITLES, evaluate_patches
    from eval.plots import check_plot, plot_roc
    from index.errors import CairnError

    if roc is not None:
        check_plot(roc)
    binary, comparison, footprint = options.pop("binary"), options["comparison"], options["footprint"]
    if (comparison is not None or footprint != 1) and descriptions is not None:
        raise CairnError("--comparison and --footprint are of descriptors, not of --descriptions: take them away.")
    described_by = descriptor_or_descriptions(descriptor, descriptions, binary)
    with progress_bars(quiet or json, TITLES) as tell:
        report = evaluate_patches(described_by, folder, **options, progress=tell)
    figures = report.to_dict()
    if roc is not None:
        plot_roc({f"{figures['descriptor']}, {figures['dim']}-D": (report.distances, report.same)}, roc)
    if json:
        print_json(figures)
        return
    spent = "" if figures["ms_per_patch"] is None else f", {figures['ms_per_patch']:.3f} ms a patch"
    say(
        f"FPR95 {100 * report.fpr95:.2f}%, AUC {report.auc:.4f} over {figures['pairs']} pairs of "
        f"{figures['pair_file']}; {figures['descriptor']}, {figures['dim']}-D, {figures['bytes']} bytes{spent}"
    )


def descriptor_or_descriptions(
    descriptor: str, descriptions: Path | None, binary: bool
) -> Union["Describer", "Descriptions"]:
    """Read the argument of --descriptor or of --descriptions; raises CairnError if both are set, or neither fits."""
    from eval.descriptions import read_descriptions
    from index.errors import CairnError
    from retrieval.descriptors.registry import find_descriptor

    if descriptions is None:
        if binary:
            raise CairnError("--binary is for --descriptions: name their file, or leave it out.")
        return find_descriptor(descriptor)
    if descriptor != DEFAULT:
        raise CairnError("--descriptor and --descriptions exclude each other: name one of them.")
    return read_descriptions(descriptions, binary=binary)
