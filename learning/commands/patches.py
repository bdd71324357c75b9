"""Commands: patches build."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from index.options.panels import CORRESPONDENCES, OUTPUT, REGIONS
from index.text import one_of
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.option_groups import shown_option
from retrieval.commands.options import Json, Quiet, Seed
from retrieval.regions.detectors.registry import DETECTORS

patches = typer.Typer(help="Labelled patches, to learn from and to measure on.", no_args_is_help=True)


@patches.command()
def build(
    out: Annotated[Path, typer.Argument(help="Folder to write; must not exist, or be empty.")],
    sources: Annotated[
        list[Path],
        typer.Argument(help="Folders of image sequences with known homographies, or one .npz of correspondences."),
    ],
    photos: Annotated[
        Path | None, typer.Option(rich_help_panel=CORRESPONDENCES, help="Folder of the photos that the .npz names.")
    ] = None,
    images: Annotated[
        str,
        typer.Option(
            rich_help_panel=CORRESPONDENCES,
            metavar="PATTERN",
            help="Which of the photos that the .npz names: 'castle_*'.",
        ),
    ] = "*",
    min_angle: Annotated[
        float,
        typer.Option(
            rich_help_panel=CORRESPONDENCES,
            metavar="DEGREES",
            help="Smallest angle between the viewing directions of a match of the .npz, degrees.",
            min=0,
        ),
    ] = 0.0,
    detector: Annotated[
        str,
        typer.Option(
            rich_help_panel=REGIONS,
            metavar="NAME",
            help=f"Of sequences: sift (OpenCV's keypoints), {one_of(['harris', *DETECTORS])}.",
        ),
    ] = "sift",
    measurement_scale: Annotated[float | None, shown_option(CollectionOptions, "measurement_scale")] = None,
    upright: Annotated[
        bool,
        typer.Option(
            "--upright/--rotated",
            rich_help_panel=REGIONS,
            help="Keep 'down' down in patches of regions, or turn them as keypoints.",
        ),
    ] = False,
    min_side: Annotated[
        float,
        typer.Option(
            rich_help_panel=REGIONS,
            help="Of sequences: leave out patches with a smaller side, pixels of the photo.",
            min=0,
        ),
    ] = 0.0,
    max_shift: Annotated[
        float,
        typer.Option(
            rich_help_panel=REGIONS,
            help="Of sequences: largest distance of a match over the smaller patch's side; 0: any.",
            min=0,
        ),
    ] = 0.2,
    max_detections: Annotated[
        int,
        typer.Option(
            rich_help_panel=REGIONS, help="Of sequences: detections a photo, the strongest; 0: no limit.", min=0
        ),
    ] = 8000,
    jitter: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=REGIONS,
            help="Of sequences: detect in the first image alone, and miss its points in the others by chance, by this "
            "part of what a match allows (standard deviation; try 0.4).",
            min=0,
        ),
    ] = None,
    train: Annotated[int, typer.Option(rich_help_panel=OUTPUT, help="Pairs to train on; 0: none.", min=0)] = 20_000,
    validation: Annotated[
        int, typer.Option(rich_help_panel=OUTPUT, help="Pairs to validate on; 0: none.", min=0)
    ] = 5_000,
    test: Annotated[int, typer.Option(rich_help_panel=OUTPUT, help="Pairs to test on; 0: none.", min=0)] = 10_000,
    seed: Seed = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Build labelled patches, in the layout of the PhotoTour sets (Brown, Hua, Winder, 2011).

    A sequence is a folder with img1, img2, … and homographies H1to2p, …, or folders 1, 2 and h of pairs. Detections
    within 5 pixels, 0.25 octaves and 22.5 degrees of each other match, those beyond twice any of these do not, and
    those between are left out. Where 5 pixels are much of a patch, such matches are by chance: see --max-shift. An
    .npz names the matches itself.

    Points are divided among train, validation and test in proportion to their pairs, so that none is in two; half of
    the pairs are matches, as far as there are so many. The pair files are m50_P_N_0.txt for train, _1 for validation
    and _2 for test, with P matches and N non-matches.
    """
    from index.errors import CairnError
    from learning.building.correspondence import MatchRule
    from learning.building.detections import DetectionOptions
    from learning.building.jitter import JitterOptions
    from learning.building.patchset import SplitOptions, build_from_points, build_from_sequences

    started = perf_counter()
    splits = SplitOptions(train, validation, test, seed)
    files = [source for source in sources if source.suffix.lower() == ".npz"]
    if not files and (photos is not None or images != "*" or min_angle):
        raise CairnError("--photos, --images and --min-angle go with an .npz of correspondences: take them away.")
    if files and jitter is not None:
        raise CairnError("--jitter is for sequences, whose points are known everywhere: take it away.")
    if files and detector != "sift":
        raise CairnError("An .npz of correspondences brings its own detections: take --detector away.")
    if files and len(sources) > 1:
        raise CairnError("Correspondences are built alone: name one .npz, or folders of sequences.")
    with progress_bars(quiet or json, {"detect": "Photos", "write": "Bitmaps"}) as tell:
        if files:
            if photos is None:
                raise CairnError("Correspondences need the photos that they name: give their folder with --photos.")
            report = build_from_points(out, files[0], photos, images, min_angle, splits=splits, progress=tell)
        else:
            options = DetectionOptions(detector, measurement_scale, upright, min_side, max_detections)
            noise = JitterOptions(jitter, seed=seed) if jitter is not None else None
            report = build_from_sequences(
                out, sources, options, MatchRule(max_shift=max_shift), splits=splits, progress=tell, noise=noise
            )
    seconds = round(perf_counter() - started, 3)
    if json:
        print_json(
            {
                "patches": report.patches,
                "points": report.points,
                "images": report.images,
                "pairs": report.pairs,
                "unused": report.unused,
                "seconds": seconds,
            }
        )
        return
    say(
        f"{out}: {report.patches} patches of {report.points} points in {report.images} photos; "
        f"{report.unused} detections left out; {seconds:.1f} s"
    )
    for name, pairs in report.pairs.items():
        matches, others, wanted = pairs["matches"], pairs["non_matches"], pairs["wanted"]
        missing = "" if matches + others == wanted else f" (there are no more; {wanted} pairs were wanted)"
        say(f"{name}: {matches} matches and {others} non-matches{missing}: {pairs['file']}")
