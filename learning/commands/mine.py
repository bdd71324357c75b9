"""Commands: mine."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from index.text import one_of
from learning.commands.as_published import AsPublished, of_mining, published
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
    from dataclasses import replace

    from index.errors import CairnError
    from learning.mining.homographies import MapOptions
    from learning.mining.mining import MiningOptions, mine_matches
    from learning.mining.photo_source import PhotoSource
    from retrieval.commands.joining import at_work
    from retrieval.features.options import FeatureOptions
    from retrieval.photos.options import ImageOptions
    from retrieval.regions.options import RegionOptions
    from retrieval.shards.cluster import open_shards

    started = perf_counter()
    if out.suffix != ".npz":
        raise CairnError(f"{out} must end with .npz, by which a file of matches is known: choose {out}.npz.")
    if not out.parent.is_dir():
        raise CairnError(f"{out.parent} is not a folder: make it first, or write the matches elsewhere.")
    if cluster is not None:  # its workers run in folders of their own
        source, out, work = source.resolve(), out.resolve(), work.resolve() if work is not None else None
    photos = PhotoSource.open(source, catalogue=catalogue)
    own = photos.collection.options if photos.collection is not None else None
    features = own.features if own is not None else FeatureOptions()
    image = own.image if own is not None else ImageOptions()
    if detector is not None and detector != features.regions.detector:
        # The collection's thresholds and scale are those of its detector.
        features = FeatureOptions(RegionOptions(detector=detector), upright=features.upright)
    if measurement_scale is not None:
        features = replace(features, measurement_scale=measurement_scale)
    if upright is not None:
        features = replace(features, upright=upright)
    if max_side is not None:
        image = replace(image, max_side=max_side)
    if views and geometry == "homography":
        raise CairnError("--views goes with --geometry views or both: without it no view is rendered.")
    if geometry == "views" and (pairs or propose is not None):
        raise CairnError("--pairs and --propose are of photos that show the same: --geometry views has none.")
    options = MiningOptions(
        geometry=geometry,
        pairs=pairs,
        views=views,
        propose=propose,
        map=MapOptions(inliers, model, strongest=0 if as_published else MapOptions.strongest),
        seed=seed,
        descriptor=descriptor,
        features=features,
        image=image,
        extent=extent,
    )
    titles = {"features": "Features", "views": "Views", "pairs": "Image pairs", "patches": "Patches"}
    with at_work(cluster, workers, work or out.parent) as hands, progress_bars(quiet or json, titles) as tell:
        if not isinstance(hands, int) and photos.collection is not None and photos.collection.has_vocabulary:
            photos = replace(photos, shards=open_shards(photos.collection, hands))
        report = mine_matches(photos, out, options, work=work, workers=hands, progress=tell)
    seconds = round(perf_counter() - started, 3)
    if json:
        print_json(
            {
                "matches": str(out),
                "proposals": report.proposals,
                "image_pairs_tried": report.tried,
                "image_pairs_kept": report.kept,
                "photos": report.photos,
                "patches": report.patches,
                "features": report.features,
                "positives": report.positives,
                "negatives": report.negatives,
                "ambiguous": report.ambiguous,
                "failed": report.failed,
                "seconds": seconds,
            }
        )
        return
    origin = {
        "ranking": "proposed by the ranking show the same",
        "random": "drawn at random show the same",
        "views": "of photos and their views have matches",
    }
    beside = ", or are of photos and their views" if geometry == "both" else ""
    say(
        f"{out}: {report.kept} of {report.tried} image pairs {origin[report.proposals]}{beside}; "
        f"{report.features} features of {report.photos} photos, {report.patches} patches, in {seconds:.1f} s"
    )
    say(
        f"{report.positives} positive matches, {report.negatives} negative ones, "
        f"{report.ambiguous} ambiguous ones left out"
    )
    print_failures(report.failed)
