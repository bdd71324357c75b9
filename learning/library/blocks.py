"""Learning a descriptor made of building blocks; `cairn learn blocks` calls the same."""

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from index.attributes import some_of
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from index.parallel import processes
from learning.library.paragraphs import SAID
from learning.library.patch_options import BlockChoices, embedding_named
from learning.library.paths import AnyPath, Paths
from learning.library.published import BROWN11, of_blocks, published
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from learning.blocks.descriptor import BlockOptions, LearntBlocks
    from learning.library.new_descriptor import NewDescriptor

TITLES = {"read": "Patches", "powell": "Parameters", "embed": "Embedding"}
"""Titles of the steps."""


@published(of_blocks)
@takes_options(BlockChoices, said=SAID)
def learn_blocks(
    source: "Paths | Sequence[ArrayLike]",
    out: AnyPath | None = None,
    *,
    progress: Telling = None,
    **options: Any,
) -> "NewDescriptor":
    """Learn a descriptor made of building blocks (Brown, Hua, Winder, 2011).

    Parameters
    ----------
    {patches}
    {progress}
    {options}

    {learnt}
    """
    from learning.blocks import descriptor as blocks
    from learning.blocks.powell import best_of
    from learning.library.labelled import open_labelled, output_file, work_folder, write_learnt
    from learning.library.new_descriptor import About, NewDescriptor
    from retrieval.descriptors.blocks.descriptor import Blocks

    began, how = perf_counter(), build(BlockChoices, options)
    file = output_file(out)
    wanted = _resolve(how)
    opened = open_labelled(source, pairs=how.pairs, seed=how.seed, pair_file=how.pair_file)
    with work_folder(how.work, file) as folder, telling(progress, TITLES) as tell:
        learnt = blocks.learn_blocks(opened, folder, wanted, workers=processes(how.workers), progress=tell)
    model = learnt.model
    model.provenance.update(blocks.provenance(opened, wanted, learnt))
    described, report = write_learnt(model, file, BROWN11 if how.as_published else None)
    base_model = model.base_model
    assert isinstance(base_model, Blocks)
    report |= {
        "pooled_dim": base_model.pooled_dim,
        "dim": described.dim,
        "bytes": described.bytes,
        "parameters": dict(base_model.parameters),
        "evaluations": len(learnt.trials),
        "area": [learnt.trials[0].area, best_of(learnt.trials).area] if learnt.trials else [],
        "embedding": model.provenance["embedding"],
        "validation": model.provenance["validation"],
        "worse_on_validation": learnt.worse,
        "work": str(folder) if how.work or file else None,
        "seconds": {"evaluation": round(learnt.seconds_per_trial, 3), "total": round(perf_counter() - began, 3)},
    }
    return NewDescriptor(described, file, About(report, details=_details(learnt, report["area"], base_model)))


def _resolve(how: BlockChoices) -> "BlockOptions":
    from learning.blocks.descriptor import PRESETS, BlockOptions, Preset
    from learning.blocks.powell import PowellOptions

    chosen = Preset(how.blocks or BlockOptions.blocks, embedding_named(how.embedding or "none"), how.dim)
    if how.preset is not None:
        if how.preset not in PRESETS:
            raise CairnError(f"There is no preset {how.preset!r}; choose one of {', '.join(PRESETS)}.")
        if (how.blocks, how.embedding, how.dim) != (None, None, None):
            raise CairnError("{--blocks}, {--embedding} and {--dim} are those of the {--preset}: take them away.")
        chosen = PRESETS[how.preset]
    if not how.powell and (how.evaluations, how.powell_pairs) != (None, None):
        raise CairnError("{--evaluations} and {--powell-pairs} are of no use with {--no-powell}: take them away.")
    if how.alpha and chosen.embedding in ("none", "pca"):
        raise CairnError(
            "{--alpha} is for embeddings that divide by matches' differences (lpp, olpp, lde, olde, glde, golde): take "
            "it away, or choose one."
        )
    usual = BlockOptions(embedding="none")
    return BlockOptions(
        powell_pairs=usual.powell_pairs if how.powell_pairs is None else how.powell_pairs,
        alphas=tuple(how.alpha) or usual.alphas,
        search=PowellOptions() if how.evaluations is None else PowellOptions(how.evaluations),
        **some_of(chosen, "blocks", "embedding", "dim"),
        **some_of(how, "powell", "patch_size", "centre", "bits", "seed"),
    )


def _details(learnt: "LearntBlocks", areas: Sequence[float], base_model: Any) -> list[str]:
    """Sentences on the learnt parameters and the embedding."""
    details = []
    if areas:
        details.append(
            f"parameters   {len(learnt.trials)} evaluations, area {areas[0]:.5f} to {areas[1]:.5f}; "
            f"{100 * learnt.before:.2f}% false positives at 95% recall on validation pairs to "
            f"{100 * learnt.pooled:.2f}%"
        )
    if learnt.worse:
        details.append(
            "             which is worse: more training pairs (--powell-pairs), or --no-powell, may do better"
        )
    if learnt.embeddings:
        details.append(
            f"embedding    {base_model.pooled_dim} to {base_model.dim} dimensions, "
            f"{100 * learnt.fpr95:.2f}% false positives"
        )
    return details
