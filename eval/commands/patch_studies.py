"""Commands: evaluate bits, evaluate blocks, evaluate footprint."""

from pathlib import Path
from typing import Annotated, Any

import typer

from eval.commands.options import CodeStudy, Csv, PairFile, PatchFolder, write_figures
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import Json, Quiet


@grouped
def bits(*, study: CodeStudy, csv: Csv = None, quiet: bool = Quiet, json: bool = Json) -> None:
    """Print the error of descriptors' binary codes (frames) by their length, those no shorter than the descriptor."""
    rows: list[dict[str, Any]] = []
    for path, model, (possible, errors, parent) in study.errors(quiet or json):
        dim = len(model.mean) if model.mean is not None else 0
        rows.append({"descriptor": str(path), "dim": dim, "bits": 32 * dim, "code": False, "fpr95": parent})
        rows += [
            {"descriptor": str(path), "dim": dim, "bits": number, "code": True, "fpr95": error}
            for number, error in zip(possible, errors, strict=True)
        ]
    write_figures(csv, rows)
    if json:
        print_json({"folder": str(study.folder), "errors": rows})
        return
    for row in rows:
        what = f"{row['bits']:5d} bits" if row["code"] else "real values"
        say(f"{100 * row['fpr95']:6.2f}%  {what}  {row['descriptor']}, {row['dim']}-D")


def blocks(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of labelled patches, in the layout of PhotoTour: errors are means.")
    ],
    descriptor: Annotated[
        list[str] | None,
        typer.Option(
            help="T- and S-blocks, as T3h-S4-25, or a file of cairn learn blocks without an embedding; may be "
            "repeated; the paper's best if left out."
        ),
    ] = None,
    csv: Csv = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Print the error of building-block descriptors by how they are clipped, and by the bits a dimension is kept in.

    Figures 13 and 14 of Brown, Hua, Winder (2011).
    """
    from eval.block_studies import studies
    from retrieval.descriptors.blocks.descriptor import BEST

    rows: list[dict[str, Any]] = []
    with progress_bars(quiet or json, {"describe": "Describing"}):
        clipping, by_bits = studies(descriptor or BEST, folders)
    for study, table in (("clipping", clipping), ("bits", by_bits)):
        for name, errors in table.items():
            for key, error in errors.items():
                setting = float(key) if key != "unit" else None
                rows.append({"descriptor": name, "study": study, "setting": setting, "fpr95": error / 100})
    write_figures(csv, rows)
    if json:
        print_json({"folders": [str(folder) for folder in folders], "errors": rows})
        return
    for row in rows:
        clip = "not clipped" if row["setting"] is None else f"{row['setting']:g}"
        kind = "κ √D" if row["study"] == "clipping" else "bits"
        say(f"{100 * row['fpr95']:6.2f}%  {kind} {clip:11}  {row['descriptor']}")


def footprint(
    folder: PatchFolder,
    descriptor: Annotated[
        list[str] | None, typer.Option(help="Name or file (.npz) of a descriptor; may be repeated; sift if left out.")
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(
            help="Share of a patch's side, about its middle, that is described; may be repeated; 0.3 to 1 by 0.05 if "
            "left out.",
            min=0.1,
            max=1,
        ),
    ] = None,
    pairs: PairFile = None,
    csv: Csv = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Print the error of descriptors by how much of a patch they describe, and the share that does best.

    SIFT depends on it a good deal (Brown, Hua, Winder, 2011, figure 6): compare with it at its best.
    """
    from eval.patches import evaluate_patches
    from learning.patches.phototour import PatchSet
    from retrieval.descriptors.registry import find_descriptor

    shares = sorted(set(share or [round(0.3 + 0.05 * number, 2) for number in range(15)]))
    descriptors = {name: find_descriptor(name) for name in descriptor or ["sift"]}
    patches = PatchSet.open(folder)
    rows: list[dict[str, Any]] = []
    with progress_bars(quiet or json, {"footprints": "Footprints"}) as tell:
        for name, one in descriptors.items():
            for part in shares:
                tell("footprints", len(rows), len(descriptors) * len(shares))
                report = evaluate_patches(patches, one, pairs, footprint=part)
                rows.append({"descriptor": name, "share": part, "fpr95": report.fpr95})
        tell("footprints", len(rows), len(rows))
    best = {
        name: min((row for row in rows if row["descriptor"] == name), key=lambda row: row["fpr95"])
        for name in descriptors
    }
    write_figures(csv, rows)
    if json:
        print_json({"folder": str(folder), "errors": rows, "best": {name: row["share"] for name, row in best.items()}})
        return
    for row in rows:
        mark = "  best" if row is best[row["descriptor"]] else ""
        say(f"{100 * row['fpr95']:6.2f}%  {row['share']:.2f} of the side  {row['descriptor']}{mark}")
