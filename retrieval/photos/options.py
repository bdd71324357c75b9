"""Options of reading photos, which a collection stores."""

from dataclasses import dataclass
from typing import Annotated

from index.errors import CairnError
from index.options.declaration import Option, check
from index.options.panels import REGIONS

ELONGATED = 2
"""A photo whose longer side is more than so many times its shorter one is elongated: a panorama, a banner, a scroll."""
PANORAMA = 8
"""What `ImageOptions.panorama` is of new collections."""


@dataclass(frozen=True)
class ImageOptions:
    """How photos are read.

    Reduced only by its longer side, a panorama would be a narrow strip. With `panorama` above 1, the working image of
    an elongated photo has the shorter side of one of 2:1, within the limit, and places in it are compared in units of
    twice its shorter side. At 1 it is read like any other photo, as in collections of earlier versions.
    """

    max_side: Annotated[  # a smaller photo is never enlarged
        int,
        Option(
            "Longer side to which photos are reduced, in pixels; 0: full size. The shorter side of a panorama, beyond "
            "2:1, keeps half as many pixels, and its longer side up to 8 times as many.",
            REGIONS,
            metavar="PIXELS",
            least=0,
        ),
    ] = 1024
    max_pixels: Annotated[
        int,
        Option(
            "Largest photo that is read, in pixels; a larger one is refused before it is decoded. For a JPEG, the "
            "pixels are counted after its decoder has reduced it.",
            REGIONS,
            least=1,
        ),
    ] = 150_000_000
    panorama: int = 1  # longest side of the working image of an elongated photo, as a multiple of `max_side`

    def __post_init__(self) -> None:
        check(self)
        if self.panorama < 1:
            raise CairnError(f"The limit on a panorama's longer side must be at least 1, not {self.panorama}.")

    @property
    def name(self) -> str:
        """Name of these options, for files that depend on them."""
        return f"{self.max_side}" if self.panorama == 1 else f"{self.max_side}x{self.panorama}"

    def working_side(self, width: int, height: int) -> int:
        """Longer side of the working image of a photo of some width and height."""
        longer = max(width, height)
        if self.max_side == 0 or longer <= self.max_side:
            return longer
        wanted = round(self.max_side * self.elongation(width, height))
        return min(longer, wanted, self.max_side * self.panorama)

    def elongation(self, width: int, height: int) -> float:
        """How many times longer a photo is than one of 2:1 with its shorter side; 1 for any that is not elongated."""
        if self.panorama == 1:
            return 1.0
        return max(1.0, max(width, height) / (ELONGATED * max(1, min(width, height))))


def new_collection(max_side: int = 1024) -> ImageOptions:
    """Options of a new collection with this longer side of the working image."""
    return ImageOptions(max_side=max_side, panorama=PANORAMA)
