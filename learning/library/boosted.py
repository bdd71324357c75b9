"""Learning a descriptor by boosting; `cairn learn boosted` calls the same."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from index.attributes import some_of
from index.errors import CairnError
from index.messages import Message
from index.options.arguments import takes_options
from index.options.declaration import build
from index.parallel import processes
from learning.library.paragraphs import SAID
from learning.library.patch_options import BoostedChoices
from learning.library.paths import AnyPath, Paths
from learning.library.published import TRZCINSKI12, of_boosting, published, usual_comparison
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from learning.boosting.descriptor import BoostingOptions, LearntBoosted
    from learning.library.new_descriptor import NewDescriptor
    from retrieval.descriptors.boosted import WeakLearners

TITLES = {"candidates": "Candidates", "boost": "Weak learners", "answers": "Describing", "metric": "Similarity"}
"""Titles of the steps."""


@published(of_boosting)
@takes_options(BoostedChoices, said=SAID)
def learn_boosted(
    source: "Paths | Sequence[ArrayLike]",
    out: AnyPath | None = None,
    *,
    note: Callable[[str], object] = lambda sentence: None,
    progress: Telling = None,
    **options: Any,
) -> "NewDescriptor":
    """Learn a descriptor by boosting (Trzcinski, Christoudias, Lepetit, Fua, 2012).

    Parameters
    ----------
    {patches}
    note : callable
        Called with a sentence before the work begins if memory limits the number of candidates.
    {progress}
    {options}

    {learnt}
    """
    from learning.boosting import descriptor as boosting
    from learning.boosting.weak_learners import USUAL_CANDIDATES, CandidateOptions, most_candidates
    from learning.library.labelled import open_labelled, output_file, write_learnt
    from learning.library.new_descriptor import About, NewDescriptor

    began, how = perf_counter(), build(BoostedChoices, options)
    file = output_file(out)
    wanted, learners, parent = _resolve(how)
    opened = open_labelled(source, pairs=how.pairs, seed=how.seed, pair_file=how.pair_file)
    pairs = sum(len(one.train) for one in opened)
    room = max(1, most_candidates(pairs))
    if how.candidates is None and learners is None and room < USUAL_CANDIDATES:
        wanted = replace(wanted, candidates=CandidateOptions(room))
        note(str(_few_candidates(room, USUAL_CANDIDATES, pairs)))
    with telling(progress, TITLES) as tell:
        learnt = boosting.learn_boosted(
            opened, wanted, learners=learners, workers=processes(how.workers), progress=tell
        )
    metric, loss = learnt.metric, learnt.rounds[-1].loss if learnt.rounds else None
    validation = {"fpr95": learnt.error, "similarity_fpr95": metric and metric.similarity_error}
    learnt.model.provenance.update(
        {
            "sources": [one.describe() for one in opened],
            "options": asdict(wanted),
            "from": parent,
            "loss": loss,
            "offset": learnt.rounds[-1].offset if learnt.rounds else None,
            "validation": validation,
        }
    )
    described, report = write_learnt(learnt.model, file, TRZCINSKI12 if how.as_published else None)
    report |= {
        "learners": learnt.learners,
        "dim": described.dim,
        "bytes": described.bytes,
        "pairs": pairs,
        "candidates": wanted.candidates.number if learners is None else None,
        "validation": validation,
        "objective": loss,
        "epochs": metric and len(metric.errors) - 1,
        "seconds": round(perf_counter() - began, 3),
    }
    return NewDescriptor(described, file, About(report, details=_details(learnt)))


def _resolve(how: BoostedChoices) -> "tuple[BoostingOptions, WeakLearners | None, str | None]":
    """Resolve defaults; also returns the weak learners to start from, and the fingerprint of their file."""
    from learning.boosting.descriptor import PLAIN, BoostingOptions
    from learning.boosting.metric import MetricOptions
    from learning.boosting.search import LearnerSearchOptions
    from learning.boosting.weak_learners import USUAL_CANDIDATES, CandidateOptions
    from retrieval.descriptors.boosted import Boosted
    from retrieval.descriptors.boxes import ResponseOptions
    from retrieval.descriptors.learnt import load_model

    names = ("orientations", "smoothing", "floor", "patch_size")
    choices = {name: value for name in names if (value := getattr(how, name)) is not None}
    if how.kind == "ssc" and (choices.keys() & {"orientations", "floor"}):
        raise CairnError("{--orientations} and {--floor} are of gradients: the kind ssc takes none.")
    if how.dim is not None and how.kind in PLAIN:
        raise CairnError(
            "The kind {name} has a dimension for each weak learner: ask for {--learners}, not for {--dim}.",
            name=how.kind,
        )
    responses = ResponseOptions("intensity" if how.kind == "ssc" else "gradient", **choices)
    # The smoothing is stated in samples of a patch of side 31.
    responses = replace(responses, smoothing=responses.smoothing * responses.patch_size / ResponseOptions.patch_size)
    existing, parent = None, None
    if how.start is not None:
        if choices:
            raise CairnError(
                "{--orientations}, {--smoothing}, {--floor} and {--patch-size} are those of the {--from|start} file: "
                "take them away."
            )
        model = load_model(how.start)
        if not isinstance(model.base_model, Boosted):
            raise CairnError(
                "{file} has no weak learners: name a descriptor file of {cairn learn boosted}.", file=how.start
            )
        existing, parent = model.base_model.learners, model.fingerprint
        responses = existing.options
    learners = how.learners or (len(existing) if existing is not None else BoostingOptions.learners)
    usual = usual_comparison(how.kind, how.form, how.keep, as_published=how.as_published)
    wanted = BoostingOptions(
        kind=how.kind,
        learners=learners,
        dim=how.dim or min(BoostingOptions.dim, learners),
        draws=how.draws,
        responses=responses,
        candidates=CandidateOptions(USUAL_CANDIDATES if how.candidates is None else how.candidates),
        search=LearnerSearchOptions(offset=how.offset),
        metric=MetricOptions(
            comparison=how.comparison or usual,
            kept=how.keep,
            start=how.scale,
            diagonal=how.kind == "lbgm-diag",
            **some_of(how, "form", "step", "epochs", "positive", "offset"),
        ),
        seed=how.seed,
    )
    return wanted, existing, parent


def _few_candidates(room: int, usual: int, pairs: int) -> Message:
    return Message(
        "{room} candidates are drawn at a time, not {usual}: memory has room for no more on {pairs} pairs; for more "
        "candidates take fewer {--pairs}.",
        room=f"{room:,}",
        usual=f"{usual:,}",
        pairs=f"{pairs:,}",
    )


def _details(learnt: "LearntBoosted") -> list[str]:
    """Sentences on the learnt weak learners and the similarity."""
    details = []
    if learnt.rounds:
        details.append(
            f"boosting     {len(learnt.rounds)} weak learners, exponential loss {learnt.rounds[-1].loss:.4f}"
        )
    if (metric := learnt.metric) is not None:
        details.append(
            f"similarity   {len(metric.errors) - 1} epochs, {100 * metric.errors[0]:.2f}% false positives at 95% "
            f"recall on validation pairs before, {100 * metric.errors[metric.chosen]:.2f}% after"
        )
    return details
