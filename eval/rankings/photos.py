"""Files of photos by their names in rankings and ground truths, and their thumbnails in a page."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.rankings.names import plain_name
from index.errors import CairnError
from retrieval.photos.decoding import read_colour_sized
from retrieval.photos.listing import list_photos
from retrieval.photos.options import ImageOptions
from retrieval.photos.thumbnails import encode_jpeg

_QUALITY = 72


class PhotoFiles:
    """Photos below some folders; the first of each name counts."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.paths: list[Path] = []
        self._by_name: dict[str, Path] = {}
        for root, path in list_photos(folders):
            self.paths.append(path)
            inside = path.relative_to(root)
            bare = inside.with_suffix("").as_posix()
            for name in (str(path), str(root.resolve() / inside), inside.as_posix(), bare, path.stem):
                self._by_name.setdefault(name, path)

    def __len__(self) -> int:
        return len(self.paths)

    def find(self, name: str) -> Path | None:
        """Return the file of a name, with or without folder and extension; None if there is no such file."""
        return self._by_name.get(name) or self._by_name.get(plain_name(name))


@dataclass(frozen=True)
class PreviewPicture:
    """A small JPEG of a photo, and the size of the photo itself, in pixels."""

    uri: str  # data:image/jpeg;base64,…
    width: int
    height: int


def picture(path: Path, side: int) -> PreviewPicture | None:
    """Make a picture with a longer side of `side` pixels; None if the photo cannot be read."""
    try:
        pixels, width, height = read_colour_sized(path, ImageOptions(max_side=side))
    except CairnError:
        return None
    return PreviewPicture(f"data:image/jpeg;base64,{b64encode(encode_jpeg(pixels, _QUALITY)).decode()}", width, height)
