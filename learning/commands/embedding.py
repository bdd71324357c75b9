"""Command: learn embedding."""

from typing import Annotated, Any

from learning.commands.as_published import AsPublished, NewFile, PatchFolders, published
from learning.library.patch_options import EmbeddingChoices
from learning.library.published import of_embeddings
from retrieval.commands.console import print_json, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet


@published(of_embeddings)
@grouped
def embedding(
    sources: PatchFolders,
    out: NewFile,
    options: Annotated[dict[str, Any], OptionsOf(EmbeddingChoices)],
    as_published: AsPublished = False,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a projection of SIFT to few dimensions by an E-block of Brown, Hua, Winder (2011).

    PCA, or directions along which matches differ little and others much, are found from the moments of labelled pairs,
    and their number is chosen by validation pairs. For one command that also learns the blocks there is learn blocks.
    """
    from learning.library.embedding import learn_embedding

    learnt = learn_embedding(sources, out, **options, as_published=as_published, progress=not (quiet or json))
    told = learnt.to_dict()
    if json:
        print_json(told)
        return
    say(
        f"{out}: {told['base']} by {told['embedding']} to {learnt.dim} dimensions, "
        f"{100 * learnt.validation['before']:.2f}% false positives at 95% recall on validation pairs before, "
        f"{100 * learnt.validation['fpr95']:.2f}% after; {told['seconds']:.0f} s"
    )
