"""Trzcinski, Christoudias, Lepetit, Fua (NIPS 2012): descriptors by boosting."""

from collections.abc import Sequence

from eval.papers.paper import Parts, of_paper
from eval.papers.phototour import SETS, dimensions, drawing, error, evaluation, few, made, roc_curves, row
from eval.reproduce.plan import Cell, Drawing, Table
from eval.reproduce.steps import Argument, Data, Here, Scale, Step

SOURCE = "Trzcinski, Christoudias, Lepetit, Fua: Learning Image Descriptors with the Boosting-Trick (NIPS 2012)"
experiment = of_paper("trzcinski12", SOURCE)
UNIT = "False positives at 95% recall, percent; in square brackets the dimensions"
_PAIRS = 200_000
_LIST = "m50_200000_200000_0.txt"
"""The published list of training pairs."""

_FIGURE_3A = {
    "SIFT": (128, 28.09),
    "Boosted SSC-128": (128, 72.95),
    "BGM-32": (32, 37.03),
    "BGM-64": (64, 29.60),
    "BGM-128": (128, 21.93),
    "BGM-256": (256, 15.99),
    "BGM-512": (512, 14.36),
}
_FIGURE_3B = {
    "BGM-PCA-32": (32, 25.73),
    "L-BGM-Diag-32": (32, 34.71),
    "L-BGM-32": (32, 16.20),
    "L-BGM-64": (64, 14.15),
    "L-BGM-128": (128, 13.76),
    "L-BGM-256": (256, 13.38),
    "L-BGM-512": (512, 16.33),
}
_FIGURE_4 = {
    ("ND", "Lib"): {
        "SSD": (1024, 69.11),
        "SIFT": (128, 36.27),
        "SURF": (64, 54.01),
        "LDAHash": (128, 49.66),
        "LDA-int": (27, 53.93),
        "Boosted SSC-128": (128, 70.35),
        "BGM-256": (256, 21.62),
        "L-BGM-64": (64, 18.05),
    },
    ("Yos", "ND"): {
        "SSD": (1024, 76.13),
        "SIFT": (128, 28.09),
        "SURF": (64, 45.51),
        "LDAHash": (128, 51.58),
        "LDA-int": (14, 49.14),
        "Boosted SSC-128": (128, 72.20),
        "BGM-256": (256, 14.69),
        "L-BGM-64": (64, 13.73),
    },
}
_LEARNING = (
    f"Learnt from the published list of 200,000 pairs, {_LIST}. The paper names no validation pairs; where something "
    "is chosen by validation, it is by 50,000 other pairs of the set's list of 500,000.",
    "The paper does not say how many boxes a weak learner is chosen from, nor how AdaBoost looks for it: here 8,192 at "
    "a time, drawn again four times.",
)
_BOOSTED = (
    "BGM-32 to BGM-256 are the first learners of the 512: boosting is greedy.",
    "The paper states neither the step nor the iterations of the stochastic gradient descent that L-BGM is learnt by: "
    "here a step of 0.005 and 60 epochs at most, chosen by validation.",
)
_SIFT = (
    "SIFT is Cairn's own, over the whole patch, in the layout of VLFeat; the paper's is siftpp of A. Vedaldi, and it "
    "does not say how it is laid on a patch."
)
_OTHERS = (
    _SIFT,
    "SSD is of the bias- and gain-normalised patch at 32 x 32 samples: the paper prints 1,024 dimensions, but neither "
    "the samples nor whether they are normalised.",
    "SURF is Cairn's own, its window the whole patch; the paper's is its authors' program.",
    "LDAHash is not built here: its numbers are the published ones alone.",
)
_DESIGNED = {"SSD": "ssd-32", "SIFT": "sift", "SURF": "surf"}


def boosted(train: str, scale: Scale, kind: str, learners: int) -> Step:
    """Boost weak learners: ``bgm``, or ``ssc`` on intensities."""
    start: tuple[Argument, ...] = () if scale.whole else ("--candidates", scale.count(20_000, 200))
    if kind == "bgm" and learners < 512:  # boosting is greedy: smaller sets are prefixes of larger ones
        start = ("--from", made(boosted(train, scale, kind, 512)))
    return Step(
        f"{learners} weak learners ({kind}) on {SETS[train]}",
        (
            *_learn(train, scale),
            "--kind",
            kind,
            "--learners",
            _few(scale, learners),
            *start,
            "--out",
            Here(f"{kind}-{learners}.npz"),
        ),
        0.1 if kind == "bgm" and learners < 512 else scale.hours(3.0 * learners / 512),
    )


def low_dimensional(train: str, scale: Scale, kind: str, dim: int) -> Step:
    """Learn the weights of 512 weak learners together, and keep some dimensions."""
    start = made(boosted(train, scale, "bgm", 512))
    return Step(
        f"{kind} of {dim} dimensions on {SETS[train]}",
        (
            *_learn(train, scale),
            "--kind",
            kind,
            "--dim",
            _few(scale, dim),
            "--from",
            start,
            "--out",
            Here(f"{kind}-{dim}.npz"),
        ),
        scale.hours(1.0),
    )


def _few(scale: Scale, number: int) -> str:
    """Fewer weak learners in a test run."""
    return str(number if scale.share >= 0.01 else max(4, number // 16))


def _learn(train: str, scale: Scale) -> tuple[Argument, ...]:
    return ("learn", "boosted", Data(SETS[train]), "--as-published", *_pairs(scale))


def _pairs(scale: Scale) -> tuple[str, ...]:
    return ("--pair-file", _LIST, *(() if scale.whole else few(scale, _PAIRS)))


def _descriptor(name: str, train: str, scale: Scale) -> Step | str | None:
    """The descriptor of a name in the figures; None if not implemented here."""
    if name in _DESIGNED:
        return _DESIGNED[name]
    kind, _, number = name.rpartition("-")
    kinds = {"BGM-PCA": "bgm-pca", "L-BGM-Diag": "lbgm-diag", "L-BGM": "lbgm"}
    if kind in kinds:
        return low_dimensional(train, scale, kinds[kind], int(number))
    if name == "LDA-int":
        return _lde(train, scale)
    if name == "LDAHash":
        return None
    return boosted(train, scale, "ssc" if kind == "Boosted SSC" else "bgm", int(number))


def _lde(train: str, scale: Scale) -> Step:
    """LDE of normalised patches, with the best number of dimensions reported by Brown11."""
    dim = {"ND": "27", "Yos": "14"}[train]
    own = ("--as-published", "--blocks", "pixels-grid-32", "--embedding", "lde", "--dim", dim, "--no-powell")
    return Step(
        f"LDE of intensities on {SETS[train]}",
        ("learn", "blocks", Data(SETS[train]), *own, *_pairs(scale), "--out", Here(f"lde-{dim}.npz")),
        scale.hours(0.3),
    )


def _cells(pair: tuple[str, str], published: dict[str, tuple[int, float]], scale: Scale) -> tuple[Cell, ...]:
    train, test = pair
    cells = []
    for name, (dim, value) in published.items():
        descriptor = _descriptor(name, train, scale)
        tested = None if descriptor is None else evaluation(test, descriptor, scale)
        ours, detail = (None, None) if tested is None else (error(tested), dimensions(tested))
        cells.append(Cell(name, row(pair), ours, value, detail, dim))
    return tuple(cells)


@experiment(", figure 2", *_LEARNING)
def figure2(scale: Scale) -> Parts:
    """Spatial weights of boosted gradient maps."""
    return [
        drawing(f"Learnt on {SETS[name]}", boosted(name, scale, "bgm", 512), "weights") for name in ("Lib", "ND", "Yos")
    ]


@experiment(", figure 3", *_LEARNING, *_BOOSTED, _SIFT)
def figure3(scale: Scale) -> Parts:
    """Boosted gradient maps, and few dimensions of them, Liberty → Notre Dame."""
    pair = ("Lib", "ND")
    return (
        Table("Boosted (a)", UNIT, _cells(pair, _FIGURE_3A, scale)),
        Table("Of 512 weak learners (b)", UNIT, _cells(pair, _FIGURE_3B, scale)),
        _curves(pair, [*_FIGURE_3A, *_FIGURE_3B], scale),
    )


@experiment(", figure 4", *_LEARNING, *_BOOSTED, *_OTHERS)
def figure4(scale: Scale) -> Parts:
    """Boosted descriptors compared with others."""
    parts: list[Table | Drawing] = []
    for pair, published in _FIGURE_4.items():
        parts += [
            Table(f"Errors, {row(pair)}", UNIT, _cells(pair, published, scale)),
            _curves(pair, tuple(published), scale),
        ]
    return parts


def _curves(pair: tuple[str, str], names: Sequence[str], scale: Scale) -> Drawing:
    descriptors = [_descriptor(name, pair[0], scale) for name in names]
    return roc_curves(pair[1], [one for one in descriptors if one is not None], scale, f"ROC curves, {row(pair)}")
