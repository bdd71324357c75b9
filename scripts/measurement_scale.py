#!/usr/bin/env python3
"""Measure retrieval against the size of the measurement region, for both detectors: the shape of Simonyan14's Fig. 8.

Upright patches, each set's own vocabulary, on the sets in CAIRN_DATASETS. Detectors define the radius of a region
differently (the detection scale σ for DoG-Affine, 3 σ for Hessian-Affine), so sizes are given as half the side of the
patch in units of σ: 12.5 is the default of the one, 3√3 = 5.2 that of the other. Photos are detected once for all
sizes. Results in the work folder are reused; it may be that of scripts/retrieval_table.py.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np
from retrieval_table import find_sets, tell

from eval.plots import check_plot
from eval.tables.retrieval import Measurement, MeasurementResult, markdown, measure, percent
from index.errors import CairnError
from learning.reports.figures import new_figure
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import progress_bars
from retrieval.commands.options import cores
from retrieval.features.options import FeatureOptions
from retrieval.library.progress import INDEXING
from retrieval.regions.detectors.registry import DETECTORS, find_detector
from retrieval.regions.options import RegionOptions
from retrieval.search.engines.registry import ENGINES

SCALES = (4, 3 * 3**0.5, 8, 12.5, 17, 22)  # half the patch's side over σ, including the detectors' own
# A curve: detector and set.
Curve = tuple[str, str]


def feature_options(detector: str, half_side: float) -> FeatureOptions:
    """Options for patches of half side `half_side` in σ."""
    own = find_detector(detector)
    scale = half_side / own.radius
    # The default by its own name, to share its features.
    default = math.isclose(scale, own.measurement_scale, rel_tol=1e-3)
    return FeatureOptions(RegionOptions(detector=detector), None if default else scale)


def draw(curves: dict[Curve, list[list[MeasurementResult]]], scales: list[float], engine: str, path: Path) -> None:
    """Draw mAP against the scale: a colour a detector, a style a set; bars are standard deviations over seeds."""
    figure = new_figure(6.5, 5)
    axes = figure.add_subplot()
    colours = {name: f"C{place}" for place, name in enumerate(dict.fromkeys(detector for detector, _ in curves))}
    styles = {name: "-" if place == 0 else "--" for place, name in enumerate(dict.fromkeys(of for _, of in curves))}
    for (detector, name), points in curves.items():
        means = np.array([[result.mean for result in point] for point in points]) * 100  # (scales, seeds)
        spread = means.std(axis=1, ddof=1) if means.shape[1] > 1 else None
        axes.errorbar(
            scales,
            means.mean(axis=1),
            spread,
            color=colours[detector],
            linestyle=styles[name],
            marker="o",
            capsize=3,
            label=f"{detector}, {name}",
        )
    axes.set(xlabel="half the side of the measurement region, in detection scales σ", ylabel=f"mAP of {engine}, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scales", type=float, nargs="+", default=SCALES, help="half the patch's side over σ")
    parser.add_argument("--detector", action="append", choices=DETECTORS, help="may be repeated [both]")
    parser.add_argument(
        "--set", action="append", help="folder of CAIRN_DATASETS; may be repeated [landmarks, paintings]"
    )
    parser.add_argument("--engine", default="tf-idf-sp", choices=ENGINES)
    parser.add_argument("--descriptor", default="rootsift", metavar="NAME|FILE")
    parser.add_argument("--seeds", type=int, default=1, help="vocabularies are made with the seeds 0, 1, … N-1 [1]")
    parser.add_argument("--turns", type=int, default=8, help="turns at which a query is tried [8]")
    parser.add_argument("--work", type=Path, default=Path("cairn-retrieval"), help="folder of all that is kept")
    parser.add_argument("--out", type=Path, default=Path("fig8.png"), help="the figure: .png, .pdf or .svg")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one a core")
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error("--seeds: one at least.")
    scales = sorted(set(arguments.scales))
    try:
        check_plot(arguments.out)
        curves = {
            (detector, photos.name): [
                [
                    Measurement(photos, photos, options, arguments.engine, arguments.turns)
                    for options in (
                        CollectionOptions(
                            descriptor=arguments.descriptor,
                            seed=seed,
                            features=feature_options(detector, scale),
                            signature="none",
                        )
                        for seed in range(arguments.seeds)
                    )
                ]
                for scale in scales
            ]
            for detector in dict.fromkeys(arguments.detector or DETECTORS)
            for photos in find_sets(arguments.set)
        }
        cells = [cell for points in curves.values() for point in points for cell in point]
        with progress_bars(False, {**INDEXING, "queries": "Queries"}) as progress:
            results = iter(measure(cells, arguments.work, workers=arguments.workers or cores(), progress=progress))
    except CairnError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    measured = {curve: [[next(results) for _ in point] for point in points] for curve, points in curves.items()}
    rows = []
    for (detector, name), points in measured.items():
        figures = [percent([result.mean for result in point]) for point in points]
        best = int(np.argmax([np.mean([result.mean for result in point]) for point in points]))
        figures[best] = f"**{figures[best]}**"
        rows.append([f"{detector}, {name}", *figures])
    print(markdown(["mAP, %", *(f"{scale:.4g} σ" for scale in scales)], rows))
    draw(measured, scales, arguments.engine, arguments.out)
    tell(f"The figure is in {arguments.out}.")


if __name__ == "__main__":
    main()
