"""Commands: learn descriptor; learn similarity, blocks, embedding and boosted are mounted here."""

from pathlib import Path
from typing import Annotated

import typer

from learning.commands.as_published import AsPublished, of_descriptors, published
from learning.commands.blocks import blocks
from learning.commands.boosted import boosted
from learning.commands.descriptor_options import (
    ModelOptions,
    PatchOptions,
    PhotoOptions,
    RunOptions,
    TuningOptions,
    is_unlabelled,
)
from learning.commands.embedding import embedding
from learning.commands.similarity import similarity
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import CatalogueAddress, Json, Quiet
from retrieval.commands.panels import OUTPUT

learn = typer.Typer(help="Learn from photos.", no_args_is_help=True)
learn.command()(similarity)
learn.command()(blocks)
learn.command()(embedding)
learn.command()(boosted)


@learn.command()
@published(of_descriptors)
@grouped
def descriptor(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="A collection, whose photos are mined; a file of matches (.npz) of cairn mine; or folders of labelled "
            "patches, as cairn patches build makes or as published."
        ),
    ],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Descriptor file (.npz) to write.")],
    model: ModelOptions,
    of_patches: PatchOptions,
    of_photos: PhotoOptions,
    tuning: TuningOptions,
    running: RunOptions,
    as_published: AsPublished = False,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a descriptor from photos, or from patches that are known to match.

    From a collection no labels are needed: views of some photos are rendered, or photos that overlap are found, and
    their regions are matched by geometry (cairn mine). In the end photos are searched with the descriptor and with
    rootSIFT, for parts of scenes that were held out; by what is found the command says which of the two to index with.
    The collection stays as it is: for a new one there is cairn index --descriptor. Of a file of matches nearest
    neighbours alone are compared.

    What is learnt is a whitening of rootSIFT, which takes a minute; with --stage both pooling regions are selected, and
    then a projection to few dimensions, by convex optimisation (Simonyan, Vedaldi, Zisserman, 2014). Each is tried in a
    grid of settings; what does best on validation pairs is taken. An interrupted run is picked up by running the same
    command again, and a run for another --dim with the same --work finds what is common there.
    """
    from index.errors import CairnError
    from learning.commands.descriptor_from_patches import learn_from_patches
    from learning.commands.descriptor_from_photos import learn_from_photos
    from retrieval.descriptors.learnt import check_model_path

    check_model_path(out)
    unlabelled = is_unlabelled(sources)
    if unlabelled and of_patches.given:
        raise CairnError("--pairs, --augment and --test are for labelled patches: take them away.")
    if not unlabelled and (of_photos.given or catalogue is not None):
        raise CairnError(
            "--geometry, --share, --rounds, --samples, --negatives, --alternations, --no-judge, --report, --photos and "
            "--catalogue are for photos without labels: take them away."
        )
    if of_photos.photos is not None and (of_photos.report is None or sources[0].suffix != ".npz"):
        raise CairnError("--photos goes with --report and a file of matches: a collection knows its photos.")
    if unlabelled:
        learn_from_photos(
            sources[0],
            out,
            model,
            of_photos,
            tuning,
            running,
            catalogue=catalogue,
            as_published=as_published,
            quiet=quiet,
            json=json,
        )
    else:
        learn_from_patches(
            sources, out, model, of_patches, tuning, running, as_published=as_published, quiet=quiet, json=json
        )
