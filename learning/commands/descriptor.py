"""Commands: learn descriptor; learn similarity, blocks, embedding and boosted are mounted here."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from learning.commands.labelled import blocks, boosted, embedding
from learning.commands.options import NewFile
from learning.commands.similarity import similarity
from learning.library.choices import LearningRunOptions, ModelChoices, PatchChoices, PhotoChoices, TuningChoices
from retrieval.commands.console import print_failures, print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, explicit, grouped
from retrieval.commands.options import CatalogueAddress, Json, Quiet

if TYPE_CHECKING:
    from learning.library.new_descriptor import NewDescriptor

learn = typer.Typer(help="Learn from photos.", no_args_is_help=True)
learn.command()(similarity)
learn.command()(blocks)
learn.command()(embedding)
learn.command()(boosted)


@learn.command()
@grouped
def descriptor(
    context: typer.Context,
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="A collection, whose photos are mined; a file of matches (.npz) of cairn mine; or folders of labelled "
            "patches, as cairn patches build makes or as published."
        ),
    ],
    out: NewFile,
    options: Annotated[
        dict[str, Any], OptionsOf(ModelChoices, PatchChoices, PhotoChoices, TuningChoices, LearningRunOptions)
    ],
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
    from learning.library import from_patches, from_photos
    from learning.library.descriptor import learn_descriptor

    with progress_bars(quiet or json, {**from_patches.TITLES, **from_photos.TITLES}) as tell:
        learnt = learn_descriptor(
            sources,
            out,
            **explicit(context, options),
            catalogue=catalogue,
            progress=tell,
        )
    if json:
        print_json(learnt.to_dict())
    elif learnt.verdict is not None:
        _print_of_photos(learnt, out)
    else:
        _print_of_patches(learnt, out)


def _print_of_patches(learnt: "NewDescriptor", out: Path) -> None:
    report = learnt.to_dict()
    if learnt.pooling is not None:
        say(
            f"pooling      {learnt.pooling.rings} rings, {learnt.pooling.dim} dimensions, "
            f"{100 * learnt.pooling.fpr95:.2f}% false positives at 95% recall on validation pairs"
        )
    if learnt.projection is not None:
        say(
            f"{learnt.projection.stage:<12} {learnt.pooled_dim} to {learnt.projection.dim} dimensions, "
            f"{100 * learnt.projection.fpr95:.2f}% false positives"
        )
    for stage, errors in report.get("test", {}).items():
        for name, error in errors.items():
            say(f"{stage:<12} {100 * error:.2f}% false positives on {name}")
    say(
        f"{out}: {learnt.name}, {len(learnt.tried)} models tried in {report['seconds']:.0f} s, "
        f"listed in {report['models']}"
    )


def _print_of_photos(learnt: "NewDescriptor", out: Path) -> None:
    report = learnt.to_dict()
    if learnt.pooling is not None:
        say(
            f"pooling      {learnt.pooling.rings} rings, {learnt.pooled_dim} dimensions, K "
            f"{_percent(learnt.pooling.share)} of the features, recall {_percent(learnt.pooling.validation)} on image "
            "pairs held out"
        )
    if (last := learnt.projection) is not None:
        say(
            f"{last.stage:12} {learnt.pooled_dim} to {learnt.dim} dimensions, K {_percent(last.share)}, "
            f"recall {_percent(last.validation)}"
        )
    print_failures(report["failed"])
    for line in learnt.details:
        say(line)
    say(str(learnt.verdict))
    say(f"{out}: {learnt.name}, {len(learnt.tried)} models in {report['seconds']:.0f} s, listed in {report['models']}")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
