"""Making labelled patches; `cairn patches build` calls the same."""

from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from learning.library.patch_options import PatchSetChoices
from learning.library.paths import AnyPath, Paths, as_path, as_paths
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from learning.building.patchset import BuildReport

TITLES = {"detect": "Photos", "write": "Bitmaps"}
"""Titles of the steps."""


@takes_options(PatchSetChoices)
def build_patches(source: Paths, out: AnyPath, *, progress: Telling = None, **options: Any) -> "BuildReport":
    """Build labelled patches, in the layout of the PhotoTour sets (Brown, Hua, Winder, 2011).

    Parameters
    ----------
    source : path or list of paths
        Folders of image sequences with known homographies, or one file (.npz) of correspondences.
    out : path
        Folder to write; must not exist, or be empty.
    progress : None, bool or callable
        Progress: none, bars, or a function of (step, done, of).
    {options}

    Raises
    ------
    CairnError
        A source is missing or damaged, or options do not go together.
    """
    from learning.building.jitter import JitterOptions
    from learning.building.patchset import build_from_points, build_from_sequences

    folder, sources, how = as_path(out, "out"), as_paths(source, "source"), build(PatchSetChoices, options)
    files = [one for one in sources if one.suffix.lower() == ".npz"]
    if not files and (how.photos is not None or how.images != "*" or how.min_angle):
        raise CairnError("{--photos}, {--images} and {--min-angle} go with an .npz of correspondences: take them away.")
    if files and how.jitter is not None:
        raise CairnError("{--jitter} is for sequences, whose points are known everywhere: take it away.")
    if files and how.detection.detector != "sift":
        raise CairnError("An .npz of correspondences brings its own detections: take {--detector} away.")
    if files and len(sources) > 1:
        raise CairnError("Correspondences are built alone: name one .npz, or folders of sequences.")
    with telling(progress, TITLES) as tell:
        if files:
            if how.photos is None:
                raise CairnError("Correspondences need the photos that they name: give their folder with {--photos}.")
            return build_from_points(
                folder, files[0], how.photos, how.images, how.min_angle, splits=how.splits, progress=tell
            )
        noise = JitterOptions(how.jitter, seed=how.splits.seed) if how.jitter is not None else None
        return build_from_sequences(
            folder, sources, how.detection, how.rule, splits=how.splits, progress=tell, noise=noise
        )
