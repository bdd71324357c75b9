"""Command: evaluate hpatches."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval.commands.patches import DEFAULT, Binary
from eval.hpatches.options import HPatchesChoices
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import note, print_json, say
from retrieval.commands.option_groups import OptionsOf, grouped, shown_option
from retrieval.commands.options import Json, Quiet

if TYPE_CHECKING:
    from eval.hpatches.run import HPatchesReport


@grouped
def hpatches(
    *,
    root: Annotated[Path, typer.Argument(help="Folder of the set, or of several: see cairn data list.")],
    descriptor: Annotated[str, shown_option(CollectionOptions, "descriptor", panel="")] = DEFAULT,
    descriptions: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a descriptor, a folder with SEQUENCE/ref.csv, SEQUENCE/e1.csv and so on (or .npy): a row "
            "for each patch of the image of that name."
        ),
    ] = None,
    binary: Binary = False,
    l1: Annotated[
        bool, typer.Option("--l1", help="Compare descriptions by the sum of absolute differences, not by Euclid.")
    ] = False,
    options: Annotated[dict[str, Any], OptionsOf(HPatchesChoices)],
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Measure a descriptor on HPatches: verification, matching and retrieval of patches."""
    from eval.library.hpatches import evaluate_hpatches

    distance = _distance(descriptor, descriptions, binary, l1)
    evaluation = evaluate_hpatches(
        root, descriptor, descriptions=descriptions, distance=distance, progress=not (quiet or json), **options
    )
    if json:
        print_json(evaluation.to_dict())
    else:
        _print(evaluation.report)


def _distance(descriptor: str, descriptions: Path | None, binary: bool, l1: bool) -> str:
    """Distance of descriptions; raises CairnError for incompatible options."""
    from index.errors import CairnError

    if descriptions is None and (binary or l1):
        raise CairnError("--binary and --l1 tell how --descriptions are compared: name their folder, or leave it out.")
    if binary and l1:
        raise CairnError("--binary and --l1 exclude each other: packed bits are compared by Hamming distance.")
    if descriptions is not None and descriptor != DEFAULT:
        raise CairnError("--descriptor and --descriptions exclude each other: name one of them.")
    return "hamming" if binary else "l1" if l1 else "l2"


def _print(report: "HPatchesReport") -> None:
    from eval.hpatches.release import KINDS, NOISE

    say(f"{'':32s}{''.join(f'{noise:>8s}' for noise in NOISE)}    mean")
    if (verification := report.verification) is not None:
        for balance, figure in (("balanced", "AUC"), ("imbalanced", "AP")):
            for negatives, by_noise in verification.areas[balance].items():
                _row(f"verification {balance} {negatives}", list(by_noise.values()))
            say(f"verification {balance}: {figure} {100 * verification.mean(balance):.2f}%")
    if (matching := report.matching) is not None:
        for kind in KINDS.values():
            means = [mean for noise in NOISE if (mean := matching.mean_of(kind, noise)) is not None]
            if means:
                _row(f"matching {kind}", means)
        say(f"matching: mAP {100 * matching.mean:.2f}%")
    if (retrieval := report.retrieval) is not None:
        _row("retrieval", [retrieval.mean_of(noise) for noise in NOISE])
        say(f"retrieval: mAP {100 * retrieval.mean:.2f}%")
    say(
        f"{report.descriptor}, {report.dim}-D, {report.bytes} bytes, {report.distance}; split {report.split}: "
        f"{report.sequences} sequences, {report.patches:,} patches; pairs {report.lists}"
    )
    if not report.is_published:
        note("The figures do not compare with published ones: name the benchmark's own lists by --tasks, all of them.")


def _row(name: str, figures: list[float]) -> None:
    cells = "".join(f"{100 * figure:8.2f}" for figure in (*figures, sum(figures) / len(figures)))
    say(f"{name:32s}{cells}")
