"""Command: learn boosted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from index.options.panels import DATA, MODEL, OUTPUT, TUNING
from learning.commands.as_published import TRZCINSKI12, AsPublished, of_boosting, published, usual_comparison
from retrieval.commands.console import note, print_json, progress_bars, say
from retrieval.commands.options import Json, Quiet, Seed, Workers, cores

if TYPE_CHECKING:
    from retrieval.descriptors.boxes import ResponseOptions


@published(of_boosting)
def boosted(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Folders of labelled patches, as cairn patches build makes or as published."),
    ],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Descriptor file (.npz) to write.")],
    kind: Annotated[
        str,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="bgm: weak learners of gradients, weighted; ssc: the same of grey values; lbgm: bgm projected to "
            "--dim by a learnt similarity; lbgm-diag: by one that only weights; bgm-pca: by principal axes.",
        ),
    ] = "lbgm",
    learners: Annotated[
        int | None, typer.Option(rich_help_panel=MODEL, help="Weak learners (default: 512, or those of --from).", min=1)
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=MODEL, help="Dimensions of lbgm, lbgm-diag or bgm-pca, at most (default: 64).", min=1
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            rich_help_panel=MODEL,
            help="Go on from the weak learners of this descriptor file, rather than look for them.",
        ),
    ] = None,
    pairs: Annotated[
        int,
        typer.Option(
            rich_help_panel=DATA, help="At most so many training pairs of each source, drawn at random; 0: all.", min=0
        ),
    ] = 0,
    candidates: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Boxes and orientations that weak learners are chosen from, drawn at a time (default: 8,192, or as "
            "many as fit into memory).",
            min=1,
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            rich_help_panel=TUNING, help="How often candidates are drawn anew, learners being shared out evenly.", min=1
        ),
    ] = 4,
    orientations: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=TUNING, help="Orientations of the gradient, an even number (default: 24).", min=2, max=64
        ),
    ] = None,
    patch_size: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=MODEL, help="Samples along a patch's side (default: 31; 64 as published).", min=15, max=72
        ),
    ] = None,
    smoothing: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Smoothing of patches: standard deviation, samples of 31 (default: 2).",
            min=0,
            max=31,
        ),
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Energy that each sample adds to that of all orientations, in units of the patch's mean gradient "
            "(default: 3): faint gradients count for little then. 0.001: hardly any, as in the paper.",
        ),
    ] = None,
    offset: Annotated[
        bool,
        typer.Option(
            "--offset/--no-offset",
            rich_help_panel=TUNING,
            help="Boost, and learn the similarity, with a constant beside it, or without, as in the paper.",
        ),
    ] = True,
    positive: Annotated[
        bool,
        typer.Option(
            "--positive/--any-sign",
            rich_help_panel=TUNING,
            help="Keep the similarity positive semi-definite as it is learnt, or drop what is negative in the end: no "
            "distance could tell it.",
        ),
    ] = True,
    form: Annotated[
        str,
        typer.Option(
            rich_help_panel=TUNING,
            metavar="NAME",
            help="What the similarity is learnt from: distance, as descriptors are compared, or inner, inner products "
            "as in the paper.",
        ),
    ] = "distance",
    comparison: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="How descriptors of lbgm and lbgm-diag are compared: distance (default), or inner, a signed inner "
            "product as in the paper (with --form inner and --keep eigenvalues; default with --as-published): cairn "
            "evaluate patches measures such a one, but no collection can be searched by it.",
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            rich_help_panel=TUNING,
            metavar="NAME",
            help="What --dim dimensions keep: variance, what differs most among patches, or eigenvalues, the "
            "similarity's largest as in the paper.",
        ),
    ] = "variance",
    scale: Annotated[
        float,
        typer.Option(
            rich_help_panel=TUNING, help="What the weak learners' weights are taken times to begin with; the paper: 1."
        ),
    ] = 0.3,
    step: Annotated[
        float,
        typer.Option(
            rich_help_panel=TUNING,
            help="Step of the descent, a share of the mean weight; inner needs 5 over the learners at most.",
        ),
    ] = 0.02,
    epochs: Annotated[
        int, typer.Option(rich_help_panel=TUNING, help="Epochs of learning the similarity, at most.", min=0)
    ] = 60,
    as_published: AsPublished = False,
    workers: Workers = 0,
    seed: Seed = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a descriptor by boosting (Trzcinski, Christoudias, Lepetit, Fua, 2012).

    A weak learner asks whether, within a box of the patch, an orientation has at most some share of the gradient.
    AdaBoost looks for those whose answers agree on matching patches and differ on others. Their answers are the
    descriptor (bgm), or are projected to few dimensions (lbgm) by a similarity learnt from the same pairs. What one
    run has found another goes on from: --from FILE.
    """
    from dataclasses import asdict, replace
    from time import perf_counter

    from index.errors import CairnError
    from learning.boosting.descriptor import PLAIN, BoostingOptions, learn_boosted
    from learning.boosting.metric import MetricOptions
    from learning.boosting.search import SearchOptions
    from learning.boosting.weak_learners import USUAL_CANDIDATES, CandidateOptions, most_candidates
    from learning.patches.sources import open_sources
    from retrieval.descriptors.boosted import Boosted
    from retrieval.descriptors.learnt import LearntDescriptor, check_model_path, load_model, save_model

    began = perf_counter()
    check_model_path(out)
    asked: dict[str, Any] = {
        "orientations": orientations,
        "smoothing": smoothing,
        "floor": floor,
        "patch_size": patch_size,
    }
    asked = {name: value for name, value in asked.items() if value is not None}
    if kind == "ssc" and (asked.keys() & {"orientations", "floor"}):
        raise CairnError("--orientations and --floor are of gradients: the kind ssc takes none.")
    if dim is not None and kind in PLAIN:
        raise CairnError(f"The kind {kind} has a dimension for each weak learner: ask for --learners, not for --dim.")
    given, parent = None, None
    if start is not None:
        if asked:
            raise CairnError(
                "--orientations, --smoothing, --floor and --patch-size are those of the --from file: take them away."
            )
        parent = load_model(start)
        base = parent.base_model
        if not isinstance(base, Boosted):
            raise CairnError(f"{start} has no weak learners: name a descriptor file of cairn learn boosted.")
        given = base.learners
    family = "intensity" if kind == "ssc" else "gradient"
    number = learners or (len(given) if given is not None else 512)
    options = BoostingOptions(
        kind=kind,
        learners=number,
        dim=dim or min(64, number),
        draws=draws,
        responses=given.options if given is not None else _responses(family, asked),
        candidates=CandidateOptions(USUAL_CANDIDATES if candidates is None else candidates),
        search=SearchOptions(offset=offset),
        metric=MetricOptions(
            form=form,
            comparison=comparison or usual_comparison(kind, form, keep, as_published=as_published),
            kept=keep,
            step=step,
            start=scale,
            epochs=epochs,
            diagonal=kind == "lbgm-diag",
            positive=positive,
            offset=offset,
        ),
        seed=seed,
    )
    opened = open_sources(sources, pairs=pairs, seed=seed)
    of = sum(len(source.train) for source in opened)
    room = max(1, most_candidates(of))
    if candidates is None and given is None and room < USUAL_CANDIDATES:
        options = replace(options, candidates=CandidateOptions(room))
        note(
            f"{room:,} candidates are drawn at a time, not {USUAL_CANDIDATES:,}: memory has room for no more on {of:,} "
            "pairs; for more candidates take fewer --pairs."
        )
    titles = {"candidates": "Candidates", "boost": "Weak learners", "answers": "Describing", "metric": "Similarity"}
    with progress_bars(quiet or json, titles) as tell:
        learnt = learn_boosted(opened, options, learners=given, workers=workers or cores(), progress=tell)
    model = learnt.model
    described = LearntDescriptor(model)
    loss = learnt.rounds[-1].loss if learnt.rounds else None
    metric = learnt.metric
    model.provenance.update(
        {
            "sources": [source.describe() for source in opened],
            "options": asdict(options),
            "from": parent and parent.fingerprint,
            "loss": loss,
            "offset": learnt.rounds[-1].offset if learnt.rounds else None,
            "validation": {"fpr95": learnt.error, "similarity_fpr95": metric and metric.similarity_error},
        }
    )
    if as_published:
        model.provenance["as_published"] = TRZCINSKI12
    save_model(out, model)
    seconds = perf_counter() - began
    told = {
        "descriptor": str(out),
        "name": described.name,
        "fingerprint": described.fingerprint,
        "learners": learnt.learners,
        "dim": described.dim,
        "bytes": described.bytes,
        "pairs": of,
        "candidates": options.candidates.number if given is None else None,
        "validation": model.provenance["validation"],
        "objective": loss,
        "epochs": metric and len(metric.errors) - 1,
        "seconds": round(seconds, 3),
    }
    if json:
        print_json(told)
        return
    if learnt.rounds:
        say(f"boosting     {len(learnt.rounds)} weak learners, exponential loss {loss:.4f}")
    if metric is not None:
        say(
            f"similarity   {len(metric.errors) - 1} epochs, {100 * metric.errors[0]:.2f}% false positives at 95% "
            f"recall on validation pairs before, {100 * metric.errors[metric.chosen]:.2f}% after"
        )
    say(
        f"{out}: {described.name}, {described.dim} dimensions, {100 * learnt.error:.2f}% false positives at 95% recall "
        f"on validation pairs; {seconds:.0f} s"
    )


def _responses(family: str, asked: dict[str, Any]) -> "ResponseOptions":
    """What is asked for, the smoothing being told in samples of a patch of 31."""
    from dataclasses import replace

    from retrieval.descriptors.boxes import ResponseOptions

    found = ResponseOptions(family, **asked)
    return replace(found, smoothing=found.smoothing * found.patch_size / ResponseOptions.patch_size)
