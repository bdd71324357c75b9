"""Where the published sets keep their photos and ground truth once unpacked."""

from pathlib import Path

from index.errors import CairnError
from retrieval.photos.listing import list_photos

_IMAGES = ("images", "jpg", "oxbuild_images", "oxbuild_images-v1", "paris", ".")
_GROUND_TRUTH = ("gt", "gt_files_170407", "gt_files", "paris_120310", ".")


def published_layout(root: Path) -> tuple[Path, Path]:
    """Find photos and ground truth of Oxford5K or Paris6K below a folder.

    Parameters
    ----------
    root : Path
        Folder in which the published archives were unpacked, under their own names or as images/ and gt/.

    Returns
    -------
    images, gt : Path
        Folder of the photos (searched with its subfolders), folder of the ground truth.

    Raises
    ------
    CairnError
        One of them is not there.
    """
    if not root.is_dir():
        raise CairnError(f"There is no folder {root}.")
    gt = next((root / name for name in _GROUND_TRUTH if any((root / name).glob("*_query.txt"))), None)
    if gt is None:
        raise CairnError(f"There is no ground truth below {root}: unpack the published files into {root / 'gt'}.")
    images = next((root / name for name in _IMAGES if (root / name).is_dir() and list_photos([root / name])), None)
    if images is None:
        raise CairnError(f"There are no photos below {root}: unpack them into {root / 'images'}.")
    return images, gt
