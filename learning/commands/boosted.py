"""Command: learn boosted."""

from typing import Annotated, Any

from learning.commands.as_published import AsPublished, NewFile, PatchFolders, published
from learning.library.patch_options import BoostedChoices
from learning.library.published import of_boosting
from retrieval.commands.console import note, print_json, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet


@published(of_boosting)
@grouped
def boosted(
    sources: PatchFolders,
    out: NewFile,
    options: Annotated[dict[str, Any], OptionsOf(BoostedChoices)],
    as_published: AsPublished = False,
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

    learnt = learn_boosted(sources, out, **options, as_published=as_published, note=note, progress=not (quiet or json))
    told = learnt.to_dict()
    if json:
        print_json(told)
        return
    for line in learnt.details:
        say(line)
    say(
        f"{out}: {learnt.name}, {learnt.dim} dimensions, {100 * learnt.validation['fpr95']:.2f}% false positives at "
        f"95% recall on validation pairs; {told['seconds']:.0f} s"
    )
