"""Output files of a benchmark: a table of rankings, precision-recall curves, and a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.rankings.benchmark import Ranked, rankings_to_save, report_of
from eval.rankings.curves import curves_of, write_curves
from eval.rankings.files import check_table, write_rankings
from eval.rankings.ground_truth import GroundTruth
from eval.rankings.page import check_page, write_page
from eval.rankings.photos import PhotoFiles
from eval.rankings.scoring import RankingReport
from eval.retrieval.options import BenchmarkFiles
from index.progress import Progress, silent


@dataclass(frozen=True)
class Outputs(BenchmarkFiles):
    """Requested output files."""

    def __post_init__(self) -> None:
        """Raise a CairnError if one cannot be written; called before the work."""
        for table in (self.save, self.pr):
            if table is not None:
                check_table(table)
        if self.report is not None:
            check_page(self.report)

    def write_benchmark(
        self,
        ranked: Ranked,
        truth: GroundTruth,
        folders: Sequence[Path],
        *,
        title: str,
        facts: dict[str, str],
        progress: Progress = silent,
    ) -> None:
        """Write the requested outputs of a benchmark run here."""
        if self.save is not None:
            write_rankings(self.save, rankings_to_save(ranked, truth))
        if self.pr is not None or self.report is not None:
            report = report_of(ranked, truth)
            photos = PhotoFiles(folders if self.report is not None else [])
            self.write_scores(report, photos, title=title, facts=facts, progress=progress)

    def write_scores(
        self,
        report: RankingReport,
        photos: PhotoFiles,
        *,
        title: str,
        facts: dict[str, str],
        progress: Progress = silent,
    ) -> None:
        """Write curves and page of scored rankings, if requested."""
        if self.pr is not None:
            write_curves(self.pr, {name: curves_of(scores) for name, scores in report.protocols.items()})
        if self.report is not None:
            write_page(self.report, report, photos, title=title, facts=facts, progress=progress)
