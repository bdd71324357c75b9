"""Commands: mine."""

from pathlib import Path
from typing import Annotated

import typer

from index.text import one_of
from learning.commands.as_published import AsPublished, published
from learning.library.published import of_mining
from retrieval.commands.console import print_failures, print_json, progress_bars, say
from retrieval.commands.options import CatalogueAddress, ClusterAddress, Json, MeasurementScale, Quiet, Seed, Workers
from retrieval.commands.panels import IMAGE_PAIRS, OUTPUT, REGIONS, RUNNING
from retrieval.regions.detectors.registry import DETECTORS


@published(of_mining)
def mine(
    source: Annotated[Path, typer.Argument(help="A collection, or a folder of photos.")],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="File of matches (.npz) to write.")],
    pairs: Annotated[
        int,
        typer.Option(
            rich_help_panel=IMAGE_PAIRS,
            help="Image pairs to try; 0: 2,000 where a ranking proposes them, 10,000 random ones.",
            min=0,
        ),
    ] = 0,
    geometry: Annotated[
        str,
        typer.Option(
            rich_help_panel=IMAGE_PAIRS,
            metavar="NAME",
            help="How it is known where a photo's regions are in another: homography (found between photos that show "
            "the same), views (the other is a view of it that is rendered: turned, stretched, blurred, noisy), or "
            "both.",
        ),
    ] = "homography",
    views: Annotated[
        int,
        typer.Option(
            rich_help_panel=IMAGE_PAIRS,
            help="Photos that a view is rendered of, with --geometry views or both; 0: 100.",
            min=0,
        ),
    ] = 0,
    inliers: Annotated[
        int,
        typer.Option(
            rich_help_panel=IMAGE_PAIRS,
            help="Fewest matches that must agree on an affine map between two photos.",
            min=4,
        ),
    ] = 50,
    propose: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=IMAGE_PAIRS,
            metavar="NAME",
            help="Image pairs: random, or ranking (photos that a collection's tf-idf index ranks high for each other). "
            "By default ranking, where the source is a collection with a vocabulary.",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            rich_help_panel=IMAGE_PAIRS,
            metavar="NAME",
            help="Map between two photos: projective, fixed from the affine one's matches, or affine.",
        ),
    ] = "projective",
    descriptor: Annotated[
        str,
        typer.Option(
            rich_help_panel=IMAGE_PAIRS,
            metavar="NAME|FILE",
            help="Descriptor whose matches the maps are found by; what is positive does not depend on it.",
        ),
    ] = "rootsift",
    detector: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=REGIONS,
            metavar="NAME",
            help=f"{one_of(DETECTORS)} (default: the collection's own, or dog-affine).",
        ),
    ] = None,
    measurement_scale: MeasurementScale = None,
    extent: Annotated[
        float,
        typer.Option(
            rich_help_panel=REGIONS,
            help="Side of the patches to learn from, as a multiple of the detector's measurement region; what is "
            "learnt describes as much. With --measurement-scale patches are of that scale.",
        ),
    ] = 1.45,
    upright: Annotated[
        bool | None,
        typer.Option(
            "--upright/--rotated",
            rich_help_panel=REGIONS,
            help="Keep 'down' down, or turn patches to their dominant orientation (default: as the collection does, or "
            "upright).",
        ),
    ] = None,
    max_side: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=REGIONS,
            metavar="PIXELS",
            help="Longer side at which photos are read, pixels; 0: as they are (default: as the collection, or 1024).",
            min=0,
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=RUNNING,
            help="Folder of what is computed on the way, kept, to mine again with other options. By default one beside "
            "the file, removed in the end.",
        ),
    ] = None,
    workers: Workers = 0,
    cluster: ClusterAddress = None,
    as_published: AsPublished = False,
    seed: Seed = 0,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Mine matches to learn a descriptor from, out of photos without any label (Simonyan, Vedaldi, Zisserman, 2014).

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
            pairs=pairs,
            geometry=geometry,
            views=views,
            inliers=inliers,
            propose=propose,
            model=model,
            descriptor=descriptor,
            detector=detector,
            measurement_scale=measurement_scale,
            extent=extent,
            upright=upright,
            max_side=max_side,
            work=work,
            workers=workers,
            cluster=cluster,
            as_published=as_published,
            seed=seed,
            catalogue=catalogue,
            progress=tell,
        )
    told = mined.to_dict()
    if json:
        print_json(told)
        return
    origin = {
        "ranking": "proposed by the ranking show the same",
        "random": "drawn at random show the same",
        "views": "of photos and their views have matches",
    }
    beside = ", or are of photos and their views" if geometry == "both" else ""
    say(
        f"{out}: {mined.pairs} of {told['image_pairs_tried']} image pairs {origin[mined.proposals]}{beside}; "
        f"{mined.features} features of {told['photos']} photos, {told['patches']} patches, in {told['seconds']:.1f} s"
    )
    say(
        f"{mined.positives} positive matches, {mined.negatives} negative ones, "
        f"{mined.ambiguous} ambiguous ones left out"
    )
    print_failures(mined.failed)
