"""Learning a descriptor, as a function of `import cairn`; `cairn learn descriptor` calls the same."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from index.parallel import cores
from learning.library.array_patches import are_arrays
from learning.library.choices import (
    ModelChoices,
    PatchChoices,
    PhotoChoices,
    RunChoices,
    TuningChoices,
    is_unlabelled,
)
from learning.library.mining import Mined
from learning.library.paths import AnyPath, Paths, as_path, as_paths
from learning.library.published import of_descriptors, published
from retrieval.library.parts.arguments import as_array, checked_count
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from learning.library.new_descriptor import NewDescriptor
    from retrieval.library.collection import Collection


def _of_descriptors(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The paper's choices, by what is learnt from."""
    return of_descriptors({**values, "sources": _paths(values["source"])})


@published(_of_descriptors)
def learn_descriptor(
    source: "Paths | Collection | Mined | Sequence[ArrayLike]",
    out: AnyPath | None = None,
    *,
    stage: str | None = None,
    base: str | None = None,
    dim: int | None = None,
    max_pooled_dim: int = 640,
    norm: str | None = None,
    pooling: AnyPath | None = None,
    pairs: int = 0,
    augment: int | None = None,
    test: Paths | None = None,
    geometry: str | None = None,
    share: Sequence[float] | None = None,
    rounds: int = 2,
    samples: int | None = None,
    negatives: int | None = None,
    alternations: int | None = None,
    judge: bool = True,
    report: AnyPath | None = None,
    photos: AnyPath | None = None,
    smoothing: float | None = None,
    quantile: float | None = None,
    power: float | None = None,
    symmetric: bool = True,
    balanced: bool = True,
    keep: float = 0.5,
    pool_step: float = 0.5,
    patch_size: int | None = None,
    mu: Sequence[float] | None = None,
    gamma: Sequence[float] | None = None,
    projection_mu: Sequence[float] | None = None,
    projection_gamma: Sequence[float] | None = None,
    hours: float = 0.0,
    work: AnyPath | None = None,
    workers: int = 0,
    seed: int = 0,
    as_published: bool = False,
    catalogue: str | None = None,
    progress: Telling = None,
) -> "NewDescriptor":
    """Learn a descriptor from photos without labels, or from patches that are known to match.

    What is learnt is a whitening of rootSIFT, in closed form; with ``stage="both"`` pooling regions are selected, and
    then a projection to few dimensions, by convex optimisation. Each is tried in a grid of settings, and what does best
    on validation pairs is taken.

    Parameters
    ----------
    source : path, list of paths, Collection, Mined, or tuple of arrays
        One of these.

        - Without labels: a collection, or its folder, whose photos are mined; what `cairn.mine` gave, or its file.
        - With labels: a folder of patches in the layout of PhotoTour, or several of them.
        - With labels, ``(patches, point_ids)``: patches (N, S, S) uint8, and the point that each shows (N,). All pairs
          of one point are matches, as many other pairs are drawn, and a fifth of the points is for validation.
        - With labels, ``(first, second, same)``: patches (M, S, S) uint8 twice, and whether the two of each pair show
          the same (M,) bool. A fifth of the pairs is for validation.
    out : path, optional
        File (.npz) to write, which `cairn.create` and `cairn index --descriptor` take.
    stage : str, optional
        ``whitening``, ``pooling``, ``projection`` or ``both``; None: the first, unless something is asked for that it
        has not, and then ``both``.
    base : str, optional
        What is whitened or projected: ``rootsift``, ``sift`` or ``pooled``.
    dim : int, optional
        Dimensions of the whitened or projected descriptor, at most; None: 80, or 128 without labels.
    max_pooled_dim : int
        Dimensions of the pooled descriptor, at most.
    norm : str, optional
        Norm of the metric: ``nuclear`` lowers the dimension, ``frobenius`` keeps it.
    pooling : path, optional
        Project the pooling regions of this descriptor file, with the stage ``projection``.
    pairs : int
        With labels: at most so many training pairs of each source, drawn at random; 0: all.
    augment : int, optional
        With labels: copies of each pair, one patch distorted as another view; None: 2.
    test : path or list of paths, optional
        With labels: folders of labelled patches that every model tried is measured on in the end.
    geometry : str, optional
        Of a collection: what it is learnt from, ``views``, ``homography`` or ``both``; see `cairn.mine`.
    share : sequence of float, optional
        Without labels: share of the mined features to learn from, K of the paper; None: 0.8, 0.7, 0.6 and 0.5.
    rounds : int
        Without labels: rounds of looking for the negatives that are hardest.
    samples, negatives, alternations : int, optional
        Without labels: features to learn from, their negatives, and turns of learning and matching, at most.
    judge : bool
        Of a collection: in the end search it with the learnt descriptor and with rootSIFT for what was held out.
    report, photos : path, optional
        Without labels: HTML report to write, and the folder of the photos that a file of matches was mined from.
    smoothing, quantile, power, patch_size : float, float, float, int, optional
        Of pooled gradients: how patches become channels.
    symmetric, balanced, keep, pool_step : bool, bool, float, float
        Of pooling regions and projections: see `cairn learn descriptor --help`.
    mu, gamma, projection_mu, projection_gamma : sequence of float, optional
        Weights of the norms and slowness of the steps that are tried.
    hours : float
        Begin no further model after these, once one fits; 0: no limit.
    work : path, optional
        Folder of what is computed on the way, kept. None: one beside `out`, of which the table of models is left.
    workers : int
        Processes; 0: as many as there are cores. The result does not depend on it.
    seed : int
        Of what is drawn.
    as_published : bool
        Take all of the paper's choices for what is not given.
    catalogue : str, optional
        Address of the collection's catalogue, where it is on a server.
    progress : None, bool or callable
        Who is told how far it is: nobody, bars, or a function of (step, done, of).

    Returns
    -------
    NewDescriptor

    Raises
    ------
    CairnError
        A source is missing, damaged or too small, arrays are of other shapes or types, or options do not go together.

    Notes
    -----
    Source: Simonyan, Vedaldi, Zisserman, Learning Local Feature Descriptors Using Convex Optimisation, TPAMI 2014,
    sections 3 to 5 (with labels) and 9 (without); the whitening: Mikolajczyk, Matas, ICCV 2007.

    Examples
    --------
    >>> import cairn, numpy as np
    >>> patches = np.random.default_rng(0).integers(0, 256, (40, 32, 32)).astype(np.uint8)
    >>> learnt = cairn.learn_descriptor((patches, np.arange(40) // 2), dim=16, workers=1)
    >>> learnt.name, learnt.describe(patches).shape == (40, learnt.dim)
    ('rootsift-white', True)
    >>> cairn.learn_descriptor((patches, np.arange(39)))
    Traceback (most recent call last):
    index.errors.CairnError: point_ids must have the shape (40,), one for each patch, not (39,).
    """
    from learning.library import from_patches, from_photos
    from learning.library.array_patches import source_of_arrays
    from learning.patches.sources import open_sources
    from retrieval.descriptors.learnt import check_model_path

    workers, seed = checked_count(workers, "workers", 0) or cores(), checked_count(seed, "seed", 0)
    file = _optional(out, "out")
    if file is not None:
        check_model_path(file)
    model = ModelChoices(stage, base, dim, max_pooled_dim, norm, _optional(pooling, "pooling"))
    of_patches = PatchChoices(
        checked_count(pairs, "pairs", 0),
        None if augment is None else checked_count(augment, "augment", 0),
        tuple(as_paths(test, "test")) if test else (),
    )
    of_photos = PhotoChoices(
        geometry,
        _numbers(share, "share"),
        rounds,
        samples,
        negatives,
        alternations,
        judge,
        _optional(report, "report"),
        _optional(photos, "photos"),
    )
    tuning = TuningChoices(
        smoothing,
        quantile,
        power,
        symmetric,
        balanced,
        keep,
        pool_step,
        patch_size,
        _numbers(mu, "mu"),
        _numbers(gamma, "gamma"),
        _numbers(projection_mu, "projection_mu"),
        _numbers(projection_gamma, "projection_gamma"),
    )
    paths = _paths(source)
    unlabelled = is_unlabelled(paths)
    if unlabelled and of_patches != PatchChoices():
        raise CairnError("--pairs, --augment and --test are for labelled patches: take them away.")
    if not unlabelled and (of_photos != PhotoChoices() or catalogue is not None):
        raise CairnError(
            "--geometry, --share, --rounds, --samples, --negatives, --alternations, --no-judge, --report, --photos and "
            "--catalogue are for photos without labels: take them away."
        )
    if of_photos.photos is not None and (of_photos.report is None or paths[0].suffix != ".npz"):
        raise CairnError("--photos goes with --report and a file of matches: a collection knows its photos.")
    beside, titles = _optional(work, "work"), {**from_patches.TITLES, **from_photos.TITLES}
    with telling(progress, titles) as tell, _folder(beside, file) as folder:
        run = RunChoices(folder, beside is not None, beside is file is None, hours, workers, seed, as_published)
        if unlabelled:
            return from_photos.learn_from_photos(
                paths[0], file, model, of_photos, tuning, run, tell, catalogue=catalogue
            )
        if paths:
            opened = open_sources(paths, pairs=pairs, seed=seed)
        else:
            opened = [source_of_arrays(source, pairs=pairs, seed=seed)]  # type: ignore[arg-type]
        return from_patches.learn_from_patches(opened, file, model, of_patches, tuning, run, tell)


def _paths(source: Any) -> list[Path]:
    """The paths of a source; none where it is arrays."""
    if are_arrays(source):
        return []
    return as_paths(source.path if isinstance(source, Mined) else source, "source")


def _numbers(given: "ArrayLike | None", name: str) -> tuple[float, ...]:
    """Numbers to choose from: one, several or none."""
    values = as_array(() if given is None else given, name)
    if values.ndim > 1 or values.dtype.kind not in "fiu":
        raise CairnError(f"{name} must be a list of numbers, not {given!r}.")
    return tuple(values.ravel().tolist())


def _optional(given: AnyPath | None, name: str) -> Path | None:
    return None if given is None else as_path(given, name)


@contextmanager
def _folder(work: Path | None, out: Path | None) -> Iterator[Path]:
    """Folder of what is computed on the way: the one that is named, one beside the file, or one that goes."""
    if work is None and out is None:
        with tempfile.TemporaryDirectory(prefix="cairn-learning-") as scratch:
            yield Path(scratch)
    else:
        yield work or (out or Path()).with_suffix(".learning")
