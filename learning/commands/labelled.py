"""Commands that learn from labelled patches alone: learn blocks, boosted, embedding."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from learning.commands.options import NewFile, PatchFolders
from learning.library.patch_options import BlockChoices, BoostedChoices, EmbeddingChoices
from retrieval.commands.console import note, print_json, say
from retrieval.commands.option_groups import OptionsOf, explicit, grouped
from retrieval.commands.options import Json, Quiet

if TYPE_CHECKING:
    from learning.library.new_descriptor import NewDescriptor


@grouped
def blocks(
    context: typer.Context,
    sources: PatchFolders,
    out: NewFile,
    options: Annotated[dict[str, Any], OptionsOf(BlockChoices)],
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a descriptor made of building blocks (Brown, Hua, Winder, 2011).

    A T-block gives each sample of a patch a vector of filter responses, an S-block pools them over regions, an N-block
    normalises and clips, an E-block projects to few dimensions. Their parameters are learnt by Powell's method on the
    area under the ROC curve, the projection from the moments of matches and non-matches. An interrupted run is picked
    up by running the same command again.
    """
    from learning.library.blocks import learn_blocks

    learnt = learn_blocks(sources, out, **explicit(context, options), progress=not (quiet or json))
    seconds = learnt.to_dict()["seconds"]["total"]
    _print(learnt, json, f"{out}: {learnt.name}, {learnt.dim} dimensions, {learnt.bytes} bytes; {seconds:.0f} s")


@grouped
def boosted(
    context: typer.Context,
    sources: PatchFolders,
    out: NewFile,
    options: Annotated[dict[str, Any], OptionsOf(BoostedChoices)],
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a descriptor by boosting (Trzcinski, Christoudias, Lepetit, Fua, 2012).

    A weak learner asks whether, within a box of the patch, an orientation has at most some share of the gradient.
    AdaBoost looks for those whose answers agree on matching patches and differ on others. Their answers are the
    descriptor (bgm), or are projected to few dimensions (lbgm) by a similarity learnt from the same pairs. What one
    run has found another goes on from: --from FILE.
    """
    from learning.library.boosted import learn_boosted

    learnt = learn_boosted(sources, out, **explicit(context, options), note=note, progress=not (quiet or json))
    error = f"{100 * learnt.validation['fpr95']:.2f}% false positives at 95% recall on validation pairs"
    seconds = learnt.to_dict()["seconds"]
    _print(learnt, json, f"{out}: {learnt.name}, {learnt.dim} dimensions, {error}; {seconds:.0f} s")


@grouped
def embedding(
    context: typer.Context,
    sources: PatchFolders,
    out: NewFile,
    options: Annotated[dict[str, Any], OptionsOf(EmbeddingChoices)],
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a projection of SIFT to few dimensions by an E-block of Brown, Hua, Winder (2011).

    PCA, or directions along which matches differ little and others much, are found from the moments of labelled pairs,
    and their number is chosen by validation pairs. For one command that also learns the blocks there is learn blocks.
    """
    from learning.library.embedding import learn_embedding

    learnt = learn_embedding(sources, out, **explicit(context, options), progress=not (quiet or json))
    report, (before, after) = learnt.to_dict(), (100 * learnt.validation[one] for one in ("before", "fpr95"))
    errors = f"{before:.2f}% false positives at 95% recall on validation pairs before, {after:.2f}% after"
    how = f"{report['base']} by {report['embedding']} to {learnt.dim} dimensions"
    _print(learnt, json, f"{out}: {how}, {errors}; {report['seconds']:.0f} s")


def _print(learnt: "NewDescriptor", json: bool, sentence: str) -> None:
    if json:
        print_json(learnt.to_dict())
        return
    for line in (*learnt.details, sentence):
        say(line)
