"""Common parts of papers that learn from labelled patches: the sets of PhotoTour, and error rates on them."""

from collections.abc import Sequence

from eval.reproduce.measures import Value
from eval.reproduce.plan import Drawing
from eval.reproduce.steps import Argument, Data, Here, Made, Scale, Step

SETS = {"Yos": "yosemite", "ND": "notredame", "Lib": "liberty"}
"""The sets by their short names in tables."""

PAIRS = (("Yos", "ND"), ("Yos", "Lib"), ("ND", "Yos"), ("ND", "Lib"), ("Lib", "Yos"), ("Lib", "ND"))
"""Training and test set, in the order of the tables."""

FIRST_FOUR = PAIRS[:4]
"""The pairs of earlier papers, which do not learn from Liberty."""

TEST_PAIRS = 100_000
_EVALUATION = 0.02  # hours: 100,000 pairs


def made(step: Step) -> Made:
    """The descriptor file of a learning step: plots name a descriptor by its file."""
    return Made(step, next(one.name for one in step.arguments if isinstance(one, Here) and one.name.endswith(".npz")))


def row(pair: tuple[str, str]) -> str:
    """Name of the row of a pair of sets."""
    return f"{pair[0]} → {pair[1]}"


def few(scale: Scale, pairs: int) -> tuple[str, ...]:
    """Options of learning with a limit of training pairs, fewer at a smaller scale."""
    return ("--pairs", scale.count(pairs, 300))


def evaluation(test: str, descriptor: Step | str, scale: Scale, footprint: Argument | None = None) -> Step:
    """Measure a descriptor, learnt by a step or named, on the test pairs of a set, at a share of a patch's side."""
    title, file = (descriptor.title, made(descriptor)) if isinstance(descriptor, Step) else (descriptor, descriptor)
    share: tuple[Argument, ...] = () if scale.whole else ("--max-pairs", scale.count(TEST_PAIRS, 200))
    if footprint is not None:
        share = (*share, "--footprint", footprint)
    return Step(
        f"{title}, tested on {SETS[test]}",
        ("evaluate", "patches", Data(SETS[test]), "--descriptor", file, *share),
        scale.hours(_EVALUATION),
    )


def error(tested: Step) -> Value:
    """Percent of false positives at 95% recall that an evaluation printed."""
    return Value(tested, ("fpr95",), 100)


def dimensions(tested: Step) -> Value:
    """Dimensions of the descriptor that an evaluation printed."""
    return Value(tested, ("dim",))


def drawing(title: str, learnt: Step, kind: str, suffix: str = ".svg") -> Drawing:
    """Draw a learnt model: a kind of `cairn plot`."""
    name = f"{kind}{suffix}"
    step = Step(f"{kind}: {title}", ("plot", kind, made(learnt), "--out", Here(name)), 0.01, prints=False)
    return Drawing(title, step, name)


def roc_curves(
    test: str, descriptors: Sequence[Step | str], scale: Scale, title: str, footprint: Argument | None = None
) -> Drawing:
    """Draw ROC curves of descriptors on the test pairs of a set; `footprint`: see `cairn plot roc`."""
    files: list[Argument] = []
    for one in descriptors:
        files += ["--descriptor", made(one) if isinstance(one, Step) else one]
    if footprint is not None:
        files += ["--footprint", footprint]
    step = Step(
        f"ROC curves: {title}",
        ("plot", "roc", Data(SETS[test]), *files, "--out", Here("roc.svg"), "--quiet"),
        scale.hours(len(descriptors) * _EVALUATION),
        prints=False,
    )
    return Drawing(title, step, "roc.svg")
