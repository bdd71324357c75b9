"""Commands: mine."""

from pathlib import Path
from typing import Annotated, Any

import typer

from index.options.panels import OUTPUT
from learning.library.mining_options import MiningChoices
from retrieval.commands.console import print_failures, print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, explicit, grouped
from retrieval.commands.options import CatalogueAddress, ClusterAddress, Json, Quiet


@grouped
def mine(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(help="A collection, or a folder of photos.")],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="File of matches (.npz) to write.")],
    options: Annotated[dict[str, Any], OptionsOf(MiningChoices)],
    cluster: ClusterAddress = None,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Find matches in photos without labels, to learn a descriptor from (Simonyan, Vedaldi, Zisserman, 2014).

    Photos that show the same thing are found by matching features, or views of photos are rendered. From then on
    geometry alone decides: a feature of the first photo has those features of the second as positives whose regions,
    mapped to the first, overlap its own by more than 0.6, and those as negatives that overlap it by less than 0.3. An
    interrupted run is picked up by running the same command again. With --cluster, its machines must see the photos and
    the folder of what is computed on the way (--work) at the same paths.
    """
    from learning.library.mining import TITLES
    from learning.library.mining import mine as mine_photos

    with progress_bars(quiet or json, TITLES) as tell:
        mined = mine_photos(
            source,
            out,
            **explicit(context, options),
            cluster=cluster,
            catalogue=catalogue,
            progress=tell,
        )
    report = mined.to_dict()
    if json:
        print_json(report)
        return
    origin = {
        "ranking": "proposed by the ranking show the same",
        "random": "drawn at random show the same",
        "views": "of photos and their views have matches",
    }
    views_note = ", or are of photos and their views" if options["geometry"] == "both" else ""
    say(
        f"{out}: {mined.pairs} of {report['image_pairs_tried']} image pairs {origin[mined.proposals]}{views_note}; "
        f"{mined.features} features of {report['photos']} photos, {report['patches']} patches, "
        f"in {report['seconds']:.1f} s"
    )
    say(
        f"{mined.positives} positive matches, {mined.negatives} negative ones, "
        f"{mined.ambiguous} ambiguous ones left out"
    )
    print_failures(mined.failed)
