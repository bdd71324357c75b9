"""Command: evaluate hpatches."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval.commands.patches import DEFAULT, Binary
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import note, print_json, progress_bars, say
from retrieval.commands.option_groups import shown_option
from retrieval.commands.options import Json, Quiet, Seed

if TYPE_CHECKING:
    from eval.hpatches.run import HPatchesReport


def hpatches(
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
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="The benchmark's folder tasks, with its splits and lists of pairs. Without it pairs are drawn here, "
            "and figures do not compare with published ones."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="a, b, c, full, illum or view; if it is left out, a with --tasks and full without."),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(help="verification, matching or retrieval; may be repeated; all if it is left out."),
    ] = None,
    max_pairs: Annotated[
        int, typer.Option(help="So many pairs of each kind and queries at most, to try things out; 0: all.", min=0)
    ] = 0,
    seed: Seed = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Measure a descriptor on HPatches: verification, matching and retrieval of patches."""
    from eval.hpatches.rows import describe_sequences, read_sequences
    from eval.hpatches.run import evaluate_hpatches
    from eval.hpatches.tasks import TASKS
    from index.errors import CairnError
    from retrieval.descriptors.registry import find_descriptor

    if descriptions is None and (binary or l1):
        raise CairnError("--binary and --l1 tell how --descriptions are compared: name their folder, or leave it out.")
    if binary and l1:
        raise CairnError("--binary and --l1 exclude each other: packed bits are compared by Hamming distance.")
    if descriptions is not None and descriptor != DEFAULT:
        raise CairnError("--descriptor and --descriptions exclude each other: name one of them.")
    titles = {"describe": "Describing", **{name: name.capitalize() for name in TASKS}}
    with progress_bars(quiet or json, titles) as tell:
        if descriptions is not None:
            distance = "hamming" if binary else "l1" if l1 else "l2"
            describe = partial(read_sequences, descriptions, distance=distance, progress=tell)
        else:
            describe = partial(describe_sequences, descriptor=find_descriptor(descriptor), progress=tell)
        report = evaluate_hpatches(
            root,
            describe,
            tasks=tasks,
            split=split,
            wanted=task or TASKS,
            most=max_pairs,
            seed=seed,
            progress=tell,
        )
    if json:
        print_json(report.as_json())
    else:
        _print(report)


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
