"""Learning a descriptor, as a function of `import cairn`; `cairn learn descriptor` calls the same."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import chosen
from index.parallel import cores
from learning.library.array_patches import are_arrays
from learning.library.choices import (
    LearningRunOptions,
    ModelChoices,
    PatchChoices,
    PhotoChoices,
    RunChoices,
    TuningChoices,
    is_unlabelled,
)
from learning.library.mining import Mined
from learning.library.paragraphs import SAID
from learning.library.paths import AnyPath, Paths, as_paths
from learning.library.published import of_descriptors, published
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from learning.library.new_descriptor import NewDescriptor
    from retrieval.library.collection import Collection


def _of_descriptors(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return of_descriptors({**values, "sources": _paths(values["source"])})


_CHOICES: tuple[Any, ...] = ModelChoices, PatchChoices, PhotoChoices, TuningChoices, LearningRunOptions


@published(_of_descriptors)
@takes_options(*_CHOICES, said=SAID)
def learn_descriptor(
    source: "Paths | Collection | Mined | Sequence[ArrayLike]",
    out: AnyPath | None = None,
    *,
    catalogue: str | None = None,
    progress: Telling = None,
    **options: Any,
) -> "NewDescriptor":
    """Learn a descriptor from photos without labels, or from patches that are known to match.

    By default a whitening of rootSIFT, in closed form; with ``stage="both"`` pooling regions, and then a projection to
    few dimensions, by convex optimisation. A grid of settings is tried, and the best model on validation pairs is
    chosen.

    Parameters
    ----------
    source : path, list of paths, Collection, Mined, or tuple of arrays
        One of these.

        - Without labels: a collection, or its folder, whose photos are mined; the result of `cairn.mine`, or its file.
        - With labels: a folder of patches in the layout of PhotoTour, or several of them.
        - With labels, ``(patches, point_ids)``: patches (N, S, S) uint8, and the point of each (N,). All pairs of one
          point are matches, as many other pairs are drawn, and a fifth of the points is for validation.
        - With labels, ``(first, second, same)``: patches (M, S, S) uint8 twice, and whether the two of each pair match
          (M,) bool. A fifth of the pairs is for validation.
    out : path, optional
        File (.npz) to write, which `cairn.create` and `cairn index --descriptor` take.
    catalogue : str, optional
        Address of the collection's catalogue, where it is on a server.
    {progress}
    {options}

    Returns
    -------
    NewDescriptor

    Raises
    ------
    CairnError
        A source is missing, damaged or too small, arrays have other shapes or types, or options are incompatible.

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
    from learning.library.labelled import open_labelled, output_file, work_folder

    file = output_file(out)
    model, of_patches, of_photos, tuning, running = (chosen(kind, options) for kind in _CHOICES)
    paths = _paths(source)
    unlabelled = is_unlabelled(paths)
    if unlabelled and of_patches != PatchChoices():
        raise CairnError("{--pairs}, {--pair-file}, {--augment} and {--test} are for labelled patches: take them away.")
    if not unlabelled and (of_photos != PhotoChoices() or catalogue is not None):
        raise CairnError(
            "{--geometry}, {--share}, {--rounds}, {--samples}, {--negatives}, {--alternations}, {--no-judge}, "
            "{--report}, {--photos} and {--catalogue} are for photos without labels: take them away."
        )
    if of_photos.photos is not None and (of_photos.report is None or paths[0].suffix != ".npz"):
        raise CairnError("{--photos} goes with {--report} and a file of matches: a collection knows its photos.")
    work, titles = running.work, {**from_patches.TITLES, **from_photos.TITLES}
    with telling(progress, titles) as tell, work_folder(work, file) as folder:
        settings = {**vars(running), "workers": running.workers or cores()}
        run = RunChoices(folder=folder, keeps=work is not None, goes=work is file is None, **settings)
        if unlabelled:
            return from_photos.learn_from_photos(
                paths[0], file, model, of_photos, tuning, run, tell, catalogue=catalogue
            )
        opened = open_labelled(source, pairs=of_patches.pairs, seed=running.seed, pair_file=of_patches.pair_file)
        return from_patches.learn_from_patches(opened, file, model, of_patches, tuning, run, tell)


def _paths(source: Any) -> list[Path]:
    if are_arrays(source):
        return []
    return as_paths(source.path if isinstance(source, Mined) else source, "source")
