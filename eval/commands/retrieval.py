"""Commands: evaluate retrieval, and one for each published set."""

import inspect
from collections.abc import Sequence
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval.library.benchmark import NOT_MEASURED
from eval.retrieval.options import BenchmarkFiles, BenchmarkRequest, BenchmarkSetup
from index.errors import CairnError
from index.options.panels import MEASURED
from index.text import shown
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, given, grouped, shown_option
from retrieval.commands.options import Json, Quiet
from retrieval.search.options import SearchOptions

if TYPE_CHECKING:
    from eval.benchmark import BenchmarkReport

WorkFolder = Annotated[Path, shown_option(BenchmarkSetup, "work")]

_MEASURED = ("context", "images", "gt", "queries")  # parameters that published sets lack
# Names, title, and the set of distractors.
_SETS = {
    "oxford5k": ("oxford5k", "Oxford5K (5,062 photos, 55 queries)", None),
    "paris6k": ("paris6k", "Paris6K (6,392 readable photos, 55 queries)", None),
    "oxford105k": ("oxford5k", "Oxford105K (Oxford5K among the 100,071 photos of Flickr100K)", "flickr100k"),
    "paris106k": ("paris6k", "Paris106K (Paris6K among the 100,071 photos of Flickr100K)", "flickr100k"),
    "roxford5k": ("roxford5k", "Revisited Oxford (4,993 photos, 70 queries; Easy, Medium and Hard)", None),
    "rparis6k": ("rparis6k", "Revisited Paris (6,322 photos, 70 queries; Easy, Medium and Hard)", None),
    "roxford1m": ("roxford5k", "Revisited Oxford among its million distractors (R1M)", "revisitop1m"),
    "rparis1m": ("rparis6k", "Revisited Paris among the million distractors of Revisited (R1M)", "revisitop1m"),
    "gldv2": ("gldv2", "Google Landmarks v2 (761,757 photos, 117,577 queries; mAP@100)", None),
    "smvs": ("smvs", "Stanford Mobile Visual Search (photos of phones search for the one reference of each)", None),
}
_OF_TWO_CAMERAS = {"smvs": ("sf_q_", "sf_r_")}
"""Prefixes of the names of query photos and database photos, where they lie in one folder."""


@grouped
def retrieval(
    context: typer.Context,
    images: Annotated[
        list[Path], typer.Option(rich_help_panel=MEASURED, help="Folder of the photos; may be repeated.")
    ],
    gt: Annotated[
        Path,
        typer.Option(
            rich_help_panel=MEASURED,
            help="Ground truth: a folder in the layout of Oxford5K or of Stanford Mobile Visual Search, a file "
            "gnd_….pkl of Revisited, or retrieval_solution_….csv of Google Landmarks.",
        ),
    ],
    how: Annotated[
        dict[str, Any],
        OptionsOf(
            CollectionOptions,
            SearchOptions,
            BenchmarkSetup,
            BenchmarkRequest,
            BenchmarkFiles,
            leave=(*NOT_MEASURED, "work"),
        ),
    ],
    queries: Annotated[
        Path | None,
        typer.Option(rich_help_panel=MEASURED, help="Folder of query photos that are not among the images."),
    ] = None,
    work: WorkFolder = Path("cairn-evaluations"),
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Index photos, run the queries of a ground truth, and print the mean average precision."""
    from eval.retrieval.vocabulary import title_of

    _print_report(_measure(context, title_of(images), images, gt, queries, quiet or json, work=work, **how), json)


def _measure(
    context: typer.Context,
    name: str,
    images: Sequence[Path],
    gt: Path,
    queries: Path | None,
    silent: bool,
    cameras: tuple[str, str] | None = None,
    **chosen: Any,
) -> "BenchmarkReport":
    """Run a benchmark with the options of `retrieval`."""
    from eval.library.benchmark import TITLES, measure

    with progress_bars(silent, TITLES) as tell:
        return measure(images, gt, queries, chosen, {*given(context, *chosen)}, tell, name=name, cameras=cameras)


def _print_report(report: "BenchmarkReport", json: bool) -> None:
    if json:
        print_json(report.as_json())
        return
    several = len(report.protocols) > 1 or "" not in report.protocols
    if several:
        _print_protocols(report)
    else:
        for score in report.scores:
            say(f"{score.ap:.4f}  {score.name}")
    learnt = f"similarity {report.similarity['file']}, " if report.similarity is not None else ""
    how = f"{report.descriptor}, {report.engine}, {learnt}expansion {report.expand}"
    words = f"{report.words} words from {report.trained_on}{_ORIGINS.get(report.origin['origin'], '')}"
    if several:
        say(f"{how}; {words}; {report.seconds['total']:.0f} s")
    else:
        from eval.protocols.scoring import mean_precision

        at = "".join(f", mP@{k} {mean_precision(report.scores, k):.4f}" for k in report.cutoffs)
        of = f"{len(report.scores)} queries"
        say(f"mAP {report.mean:.4f}{at} over {of}; {how}; {words}; {report.seconds['total']:.0f} s")
    if report.share < 1:
        say(f"A smoke test with a share of {report.share:g}: no figure of the set.")
    if report.turns > 1 and not report.every_turn:
        say(
            f"Queries were looked at turned only where that can change the answer: --every-turn tries all "
            f"{report.turns} turns of each."
        )
    if report.distractors:
        say(f"{report.distractors} of the {report.images} photos are distractors.")
    if report.missing:
        say(f"{len(report.missing)} photos of the ground truth are not among the images.")
    if report.left_out:
        say(
            f"{len(report.left_out)} queries, such as {shown(report.left_out[0])}, are not scored: none of the photos "
            "that they should find is among the images."
        )
    for entry in report.failed:
        say(f"failed: {entry['path']}: {entry['reason']}")
    _tell_where(report)


_ORIGINS = {
    "own": ", which are searched too (with an independent vocabulary, figures are lower)",
    "shared": ", and some of these are searched too",
    "independent": ", and none of these is searched",
}


def _print_protocols(report: "BenchmarkReport") -> None:
    """Print the scores of Revisited: a line a query, then a line a protocol."""
    from eval.protocols.scoring import mean_precision
    from learning.measures.precision import mean_average_precision

    by_query: dict[str, dict[str, float]] = {}
    for protocol, scores in report.protocols.items():
        for score in scores:
            by_query.setdefault(score.name, {})[protocol] = score.ap
    say("  ".join(f"{protocol:6}" for protocol in report.protocols))
    for name, scored in by_query.items():
        columns = [f"{scored[protocol]:.4f}" if protocol in scored else "     -" for protocol in report.protocols]
        say(f"{'  '.join(columns)}  {name}")
    for protocol, scores in report.protocols.items():
        precision = "".join(f", mP@{k} {mean_precision(scores, k):.4f}" for k in report.cutoffs)
        mean = mean_average_precision([score.ap for score in scores])
        at = f"@{report.truth.depth}" if report.truth.depth else ""
        say(f"{protocol}: mAP{at} {mean:.4f}{precision} over {len(scores)} queries")


def _tell_where(report: "BenchmarkReport") -> None:
    """Report what an earlier run did, and the folder of the run."""
    if report.work is None:
        return
    searches, before = report.work["searches"], report.work["done_before"]
    if before:
        again = "nothing was searched for again" if before == searches else "the others were searched for now"
        say(f"{before} of {searches} searches were done by an earlier run: {again}.")
    if report.work["bytes"] is not None:
        say(f"Kept in {report.work['folder']} ({report.work['bytes'] / 1e6:.0f} MB); --discard removes it.")


def add_retrieval_commands(evaluate: typer.Typer) -> None:
    """Add `retrieval`, and a similar command for each published set."""
    evaluate.command()(retrieval)
    for name in _SETS:
        _add_set(evaluate, name)


def _add_set(evaluate: typer.Typer, name: str) -> None:
    """Add a command like `retrieval`, for the folder that a published set unpacks to."""
    located, title, distractor_set = _SETS[name]

    def command(context: typer.Context, root: Path, **chosen: Any) -> None:
        from eval.sets.layouts import locate

        located_set = locate(located, root)
        if located_set.ground_truth is None:
            raise CairnError(f"There is no ground truth of {located} below {root}.")
        if distractor_set is not None:
            chosen["distractors"] = [*locate(distractor_set, root).images, *(chosen["distractors"] or ())]
        quiet, json = chosen.pop("quiet"), chosen.pop("json")
        cameras = _OF_TWO_CAMERAS.get(name) if located_set.queries is None else None
        report = _measure(
            context,
            name,
            located_set.images,
            located_set.ground_truth,
            located_set.queries,
            quiet or json,
            cameras=cameras,
            **chosen,
        )
        _print_report(report, json)

    # The command line follows from the signature: that of `retrieval`, with --root for its folders.
    Root = Annotated[
        Path, typer.Option(rich_help_panel=MEASURED, help="Folder of the set, or of several: see cairn data list.")
    ]
    shared = [one for one in inspect.signature(retrieval).parameters.values() if one.name not in _MEASURED]
    parameters = [
        Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context),
        Parameter("root", Parameter.KEYWORD_ONLY, annotation=Root),
        *(one.replace(kind=Parameter.KEYWORD_ONLY) for one in shared),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    evaluate.command(name=name, help=f"Measure on {title}: its photos and ground truth under --root.")(command)
