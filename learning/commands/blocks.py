"""Command: learn blocks."""

from typing import Annotated, Any

from learning.commands.as_published import AsPublished, NewFile, PatchFolders, published
from learning.library.patch_options import BlockChoices
from learning.library.published import of_blocks
from retrieval.commands.console import print_json, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet


@published(of_blocks)
@grouped
def blocks(
    sources: PatchFolders,
    out: NewFile,
    options: Annotated[dict[str, Any], OptionsOf(BlockChoices)],
    as_published: AsPublished = False,
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

    learnt = learn_blocks(sources, out, **options, as_published=as_published, progress=not (quiet or json))
    told = learnt.to_dict()
    if json:
        print_json(told)
        return
    for line in learnt.details:
        say(line)
    say(f"{out}: {learnt.name}, {learnt.dim} dimensions, {learnt.bytes} bytes; {told['seconds']['total']:.0f} s")
