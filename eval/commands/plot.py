"""Commands: plot roc, pr, regions, metric, models, bits, similarity; plot weights and projections are mounted here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from eval.commands.learnt_plots import projections, weights
from eval.commands.options import CodeStudy, PairFile, PatchFolder, Picture
from eval.commands.patches import MaxPairs
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import CatalogueAddress, Json, Quiet, Seed

plot = typer.Typer(help="Draw what was learnt and measured; needs matplotlib.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="A descriptor file (.npz) that cairn learn wrote.")]


@dataclass(frozen=True)
class ComparedDescriptors:
    """Descriptors, or their descriptions of patches, from the command line."""

    descriptor: Annotated[
        list[str] | None, typer.Option(help="Name or file (.npz) of a descriptor; may be repeated.")
    ] = None
    descriptions: Annotated[
        list[Path] | None,
        typer.Option(
            help="Rows of numbers (.npy, .npz, .csv) that describe all patches of the folder, in their order; may be "
            "repeated."
        ),
    ] = None
    binary_descriptions: Annotated[
        list[Path] | None, typer.Option(help="The same of packed bits (uint8), for Hamming distance; may be repeated.")
    ] = None
    footprint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]SHARE",
            help="Share of a patch's side, about its middle, that is described: by all --descriptors, or by one, as "
            "sift=0.65; may be repeated.",
        ),
    ] = None


@plot.command()
@grouped
def roc(
    *,
    folder: PatchFolder,
    out: Picture,
    compared: ComparedDescriptors,
    pairs: PairFile = None,
    max_pairs: MaxPairs = 0,
    seed: Seed = 0,
    quiet: bool = Quiet,
) -> None:
    """Draw the ROC curves of descriptors on labelled patches."""
    from eval.descriptions import read_descriptions
    from eval.patches import evaluate_patches
    from eval.plots import check_plot, plot_roc
    from index.errors import CairnError
    from retrieval.descriptors.registry import find_descriptor

    check_plot(out)
    sources: dict[str, Any] = {name: find_descriptor(name) for name in compared.descriptor or []}
    sources |= {str(path): read_descriptions(path) for path in compared.descriptions or []}
    sources |= {str(path): read_descriptions(path, binary=True) for path in compared.binary_descriptions or []}
    if not sources:
        raise CairnError("There is nothing to draw: name a --descriptor, or a file of --descriptions.")
    shares = _footprints(compared.footprint or [], compared.descriptor or [])
    curves = {}
    for name, one in sources.items():
        with progress_bars(quiet, {"describe": name}) as tell:
            share = shares.get(name, 1.0)
            report = evaluate_patches(folder, one, pairs, tell, footprint=share, max_pairs=max_pairs, seed=seed)
        label = f"{Path(name).stem}, {report.dim}-D"
        curves[f"{name}, {report.dim}-D" if label in curves else label] = (report.distances, report.match)
    plot_roc(curves, out)
    say(str(out))


@plot.command()
def pr(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Rankings (.csv, .json, or a folder of .txt), as cairn evaluate ranking takes, or tables that "
            "its --pr wrote."
        ),
    ],
    out: Picture,
    gt: Annotated[Path | None, typer.Option(help="Ground truth that rankings are scored by.")] = None,
) -> None:
    """Draw precision against recall of rankings, the mean over queries."""
    from eval.plots import check_plot, plot_pr
    from eval.rankings.curves import RECALLS, mean_curves

    check_plot(out)
    curves = {}
    for file in files:
        for protocol, curve, figure in mean_curves(file, gt):
            name = str(file) if [one.stem for one in files].count(file.stem) > 1 else file.stem
            curves[f"{name}{protocol and f', {protocol}'}{figure and f' ({figure})'}"] = (RECALLS, curve)
    plot_pr(curves, out)
    say(str(out))


@plot.command()
def regions(descriptor: File, out: Picture) -> None:
    """Draw the pooling regions of a learnt descriptor, with their weights and the share of each pixel."""
    from eval.plots import check_plot, plot_pooling_regions
    from index.errors import CairnError
    from retrieval.descriptors.learnt import load_model

    check_plot(out)
    pooling = load_model(descriptor).pooling
    if pooling is None:
        raise CairnError(f"{descriptor} has no learnt pooling regions: it projects SIFT.")
    plot_pooling_regions(pooling.regions, pooling.weights, pooling.channels.patch_size / 2, out)
    say(str(out))


@plot.command()
def metric(descriptor: File, out: Picture) -> None:
    """Draw the matrix A of a learnt projection."""
    from eval.plots import check_plot, plot_metric
    from index.errors import CairnError
    from retrieval.descriptors.learnt import load_model

    check_plot(out)
    projection = load_model(descriptor).projection
    if projection is None:
        raise CairnError(f"{descriptor} has no learnt projection: learn one with --stage projection or both.")
    plot_metric(projection.T @ projection, out)  # A = Wᵀ W
    say(str(out))


@plot.command()
def models(
    records: Annotated[
        Path,
        typer.Argument(
            help="JSON list of models tried: their stage, dim and fpr95; or the table (tested.csv) that cairn learn "
            "descriptor --test leaves in its folder."
        ),
    ],
    out: Picture,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of the table: validation, or a folder that was tested on (default: the first of these).",
        ),
    ] = None,
) -> None:
    """Draw the error of every model tried against its dimension, a panel for each stage."""
    from eval.plots import check_plot, plot_dimension_error
    from index.arrays import load_json
    from index.errors import CairnError

    check_plot(out)
    if column is not None and records.suffix != ".csv":
        raise CairnError("--column is of a table (.csv): a list of models has one error of each.")
    entries = _of_table(records, column) if records.suffix == ".csv" else load_json(records)
    plot_dimension_error(_models_by_stage(entries, records), out)
    say(str(out))


@plot.command()
@grouped
def bits(*, study: CodeStudy, out: Picture, quiet: bool = Quiet) -> None:
    """Draw the error of descriptors' binary codes against their length, those no shorter than the descriptor."""
    from eval.plots import check_plot, plot_bits

    check_plot(out)
    stems = [path.stem for path in study.descriptor]
    curves = {
        path.stem if stems.count(path.stem) == 1 else str(path): errors for path, _, errors in study.errors(quiet)
    }
    plot_bits(curves, out)
    say(str(out))


plot.command()(weights)
plot.command()(projections)


@plot.command()
def similarity(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    gt: Annotated[Path, typer.Option(help="Labels, as cairn learn similarity takes them.")],
    learnt: Annotated[Path, typer.Option("--similarity", help="A similarity file (.npz) that cairn learn wrote.")],
    out: Picture,
    trim: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.49,
            metavar="SHARE",
            help="Share of the largest and of the smallest similarities of each group to leave out; 0.08 in Yan and Yu "
            "(2013), figure 3.",
        ),
    ] = 0.0,
    linear: Annotated[
        bool, typer.Option("--linear", help="A linear axis, as in the paper, rather than a logarithmic one.")
    ] = False,
    catalogue: CatalogueAddress = None,
    json: bool = Json,
) -> None:
    """Draw how similar photos of one object are, and photos of different ones, by tf-idf and by a learnt similarity."""
    import numpy as np
    from numpy.typing import NDArray

    from eval.plots import check_plot, plot_similarities
    from learning.labels.files import read_labels
    from retrieval.catalogue.photos import all_indexed
    from retrieval.collection.collection import Collection

    check_plot(out)
    with Collection.open(collection, catalogue=catalogue) as opened:
        labels = read_labels(gt, opened.catalogue.read(all_indexed), skip_missing=True)
        numbers = opened.index.image_numbers.astype(np.int64)
        relevance = labels.relevance(numbers, np.random.default_rng(0))
        groups = {}
        for name, index in (("tf-idf", opened.index), ("learnt", opened.scored_index(similarity=learnt))):
            matching: list[NDArray[np.floating]] = [np.zeros(0)]
            other: list[NDArray[np.floating]] = [np.zeros(0)]
            of = zip(relevance.queries.tolist(), relevance.positives, relevance.ignored, strict=True)
            for number, positives, ignored in of:
                scores = index.score(index.images.features(number).words).scores
                matching.append(scores[np.isin(numbers, positives)])
                searched = np.isin(numbers, relevance.database)
                other.append(scores[searched & ~np.isin(numbers, positives) & ~np.isin(numbers, ignored)])
            groups[name] = np.concatenate(matching), np.concatenate(other)
    drawn = plot_similarities(groups, out, trim=trim, linear=linear)
    if json:
        print_json({"plot": str(out), **drawn})
        return
    say(str(out))


def _footprints(arguments: list[str], descriptors: list[str]) -> dict[str, float]:
    """Shares of a patch's side by the descriptors' names."""
    from index.errors import CairnError

    shares: dict[str, float] = {}
    for one in arguments:
        name, has_name, share = one.rpartition("=")
        if has_name and name not in descriptors:
            raise CairnError(f"--footprint names {name!r}, which is no --descriptor of this plot.")
        try:
            shares |= {each: float(share) for each in ([name] if has_name else descriptors)}
        except ValueError:
            raise CairnError(f"--footprint is a share of the patch's side, such as 0.65, and not {share!r}.") from None
    return shares


def _of_table(path: Path, column: str | None) -> list[dict[str, str]]:
    """Models of a table written by `cairn learn descriptor --test`, with the errors of one column."""
    import csv

    from index.errors import CairnError

    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        names = list(rows[0])
        errors = names[names.index("validation") : names.index("chosen")]
        name = column or errors[1]
        rows_of_column = [
            {"stage": row["stage"], "dim": row["dim"], "fpr95": row[name]} for row in rows if name in errors
        ]
    except (OSError, UnicodeDecodeError, csv.Error, LookupError, ValueError) as error:
        raise CairnError(f"{path} is no table of models that were tested: cairn learn descriptor --test.") from error
    if not rows_of_column:
        raise CairnError(f"{path} has no errors on {name!r}: choose one of {', '.join(errors)}.")
    return rows_of_column


def _models_by_stage(records: Any, path: Path) -> dict[str, list[tuple[int, float]]]:
    """Dimension and error of each model, by stage, in the order of the list."""
    from index.errors import CairnError

    entries: dict[str, list[tuple[int, float]]] = {}
    try:
        for record in records:
            entries.setdefault(str(record["stage"]), []).append((int(record["dim"]), float(record["fpr95"])))
    except (TypeError, KeyError, ValueError) as error:
        raise CairnError(f"{path} is no list of models: each needs a stage, a dim and an fpr95.") from error
    if not entries:
        raise CairnError(f"{path} lists no model: let cairn learn descriptor try some first.")
    return entries
