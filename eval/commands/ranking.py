"""Command: evaluate ranking."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval.retrieval.options import BenchmarkFiles
from index.options.panels import MEASURED
from retrieval.commands.console import note, print_json, progress_bars, say
from retrieval.commands.option_groups import shown_option
from retrieval.commands.options import Json, Quiet

if TYPE_CHECKING:
    from eval.rankings.scoring import RankingReport

Images = Annotated[
    list[Path] | None,
    typer.Option(
        rich_help_panel=MEASURED,
        help="Folder of the photos that were searched, or of the queries; may be repeated. Rankings of other photos "
        "are then refused; --report shows them.",
    ),
]
PrecisionRecall = Annotated[Path | None, shown_option(BenchmarkFiles, "pr")]
Report = Annotated[Path | None, shown_option(BenchmarkFiles, "report")]


def ranking(
    file: Annotated[
        Path,
        typer.Argument(
            help="Table (.csv) of query, rank and photo; or a folder of NAME.txt, one photo a line; or .json, "
            "lists of photos by query; or the table (.csv) of id and images that Google Landmarks takes. Photos with "
            "or without folder and ending."
        ),
    ],
    gt: Annotated[
        Path,
        typer.Option(
            rich_help_panel=MEASURED,
            help="Ground truth: a folder in the layout of Oxford5K, a gnd_*.pkl of Revisited, or "
            "retrieval_solution_*.csv of Google Landmarks.",
        ),
    ],
    images: Images = None,
    pr: PrecisionRecall = None,
    report: Report = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Score a ranking that was made elsewhere, and print the average precision of each query and their mean."""
    from eval.rankings.files import read_rankings
    from eval.rankings.ground_truth import read_truth_of_rankings
    from eval.rankings.outputs import Outputs
    from eval.rankings.photos import PhotoFiles
    from eval.rankings.scoring import score_rankings
    from index.errors import CairnError

    outputs = Outputs(pr=pr, report=report)
    truth = read_truth_of_rankings(gt)
    photos = PhotoFiles(images or [])
    if images and not photos:
        raise CairnError(f"There is no photo in {', '.join(map(str, images))}: let --images name folders of photos.")
    scored = score_rankings(read_rankings(file), truth, map(str, photos.paths) if images else None)
    with progress_bars(quiet or json, {"page": "Page"}) as tell:
        outputs.write_scores(scored, photos, title=f"Ranking {file.name}", facts={}, progress=tell)
    if json:
        print_json(scored.as_json())
    else:
        print_scores(scored)


def print_scores(report: "RankingReport") -> None:
    """Print the scores of rankings as text: a line a query, then a line a protocol."""
    several = len(report.protocols) > 1
    if several:
        say("  ".join(f"{protocol:6}" for protocol in report.protocols))
    by_query: dict[str, dict[str, float]] = {}
    for protocol, scores in report.protocols.items():
        for score in scores:
            by_query.setdefault(score.query.name, {})[protocol] = score.ap
    for name, scored in by_query.items():
        columns = [f"{scored[protocol]:.4f}" if protocol in scored else "     -" for protocol in report.protocols]
        say(f"{'  '.join(columns)}  {name}{'  (no ranking)' if name in report.unranked else ''}")
    for protocol, scores in report.protocols.items():
        precision = "".join(f", mP@{k} {report.mean_precision(protocol, k):.4f}" for k in report.cutoffs)
        of = f"{protocol}: " if several else ""
        say(f"{of}mAP {report.mean(protocol):.4f}{precision} over {len(scores)} queries; {report.source}")
    for sentence in report.notes:
        note(sentence)


def recognition(
    file: Annotated[
        Path, typer.Argument(help="Predictions (.csv) of id and landmarks: one landmark and its score, or nothing.")
    ],
    gt: Annotated[Path, typer.Option(rich_help_panel=MEASURED, help="recognition_solution_*.csv of Google Landmarks.")],
    json: bool = Json,
) -> None:
    """Score predicted landmarks by the global average precision (GAP) of Google Landmarks v2."""
    from dataclasses import asdict

    from eval.protocols.google_landmarks import score_recognition

    scored = score_recognition(gt, file)
    if json:
        print_json({"predictions": str(file), "parts": {name: asdict(one) for name, one in scored.items()}})
        return
    for name, one in scored.items():
        say(
            f"{name}: GAP {one.gap:.4f}, of photos with a landmark alone {one.landmarks_alone:.4f}; {one.predicted} of "
            f"{one.photos} photos predicted, {one.with_landmark} show a landmark"
        )
