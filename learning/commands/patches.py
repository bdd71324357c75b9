"""Commands: patches build."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from learning.library.patch_options import PatchSetChoices
from retrieval.commands.console import print_json, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet

patches = typer.Typer(help="Labelled patches, to learn from and to measure on.", no_args_is_help=True)


@patches.command()
@grouped
def build(
    out: Annotated[Path, typer.Argument(help="Folder to write; must not exist, or be empty.")],
    sources: Annotated[
        list[Path],
        typer.Argument(help="Folders of image sequences with known homographies, or one .npz of correspondences."),
    ],
    options: Annotated[dict[str, Any], OptionsOf(PatchSetChoices)],
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
    from learning.library.patch_sets import build_patches

    started = perf_counter()
    report = build_patches(sources, out, **options, progress=not (quiet or json))
    seconds = round(perf_counter() - started, 3)
    if json:
        print_json({**vars(report), "seconds": seconds})
        return
    say(
        f"{out}: {report.patches} patches of {report.points} points in {report.images} photos; "
        f"{report.unused} detections left out; {seconds:.1f} s"
    )
    for name, pairs in report.pairs.items():
        matches, others, wanted = pairs["matches"], pairs["non_matches"], pairs["wanted"]
        missing = "" if matches + others == wanted else f" (there are no more; {wanted} pairs were wanted)"
        say(f"{name}: {matches} matches and {others} non-matches{missing}: {pairs['file']}")
