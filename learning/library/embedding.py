"""Learning a projection of SIFT; `cairn learn embedding` calls the same."""

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from index.attributes import some_of
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from learning.library.paragraphs import SAID
from learning.library.patch_options import EmbeddingChoices, embedding_named
from learning.library.paths import AnyPath, Paths
from learning.library.published import BROWN11, of_embeddings, published
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from learning.library.new_descriptor import NewDescriptor

TITLES = {"describe": "Describing", "embed": "Embeddings"}
"""Titles of the steps."""


@published(of_embeddings)
@takes_options(EmbeddingChoices, said=SAID)
def learn_embedding(
    source: "Paths | Sequence[ArrayLike]",
    out: AnyPath | None = None,
    *,
    progress: Telling = None,
    **options: Any,
) -> "NewDescriptor":
    """Learn a projection of SIFT to few dimensions by an E-block of Brown, Hua, Winder (2011).

    Parameters
    ----------
    {patches}
    {progress}
    {options}

    {learnt}
    """
    from learning.blocks.base_embedding import EmbeddingOptions, learn_base_embedding
    from learning.library.labelled import open_labelled, output_file, write_learnt
    from learning.library.new_descriptor import About, NewDescriptor

    began, how = perf_counter(), build(EmbeddingChoices, options)
    file = output_file(out)
    if how.alpha and how.embedding == "pca":
        raise CairnError("{--alpha} is for embeddings that divide by matches' differences: pca takes none.")
    wanted = EmbeddingOptions(
        embedding=embedding_named(how.embedding),
        alphas=tuple(how.alpha) or EmbeddingOptions.alphas,
        **some_of(how, "base", "dim", "centre", "seed", "footprint"),
    )
    opened = open_labelled(source, pairs=how.pairs, seed=how.seed, pair_file=how.pair_file)
    with telling(progress, TITLES) as tell:
        learnt = learn_base_embedding(opened, wanted, tell)
    described, report = write_learnt(learnt.model, file, BROWN11 if how.as_published else None)
    report |= {
        "base": wanted.base,
        "embedding": wanted.embedding,
        "dim": described.dim,
        "alpha": learnt.chosen.alpha,
        "validation": {"before": learnt.before, "fpr95": learnt.chosen.fpr95},
        "tried": len(learnt.tried),
        "seconds": round(perf_counter() - began, 3),
    }
    return NewDescriptor(described, file, About(report))
