"""How photos are read: options alone, which a collection keeps, and nothing that reads one."""

from dataclasses import dataclass

from index.errors import CairnError


@dataclass(frozen=True)
class ImageOptions:
    """How photos are read."""

    max_side: int = 1024  # longer side of the working image, pixels; a smaller photo is never enlarged; 0 = no limit
    max_pixels: int = 150_000_000  # a file with more pixels is refused before it is decoded

    def __post_init__(self) -> None:
        if self.max_side < 0:
            raise CairnError(f"The longest side must be a number of pixels, or 0 for no limit, not {self.max_side}.")
        if self.max_pixels < 1:
            raise CairnError(f"The limit on a photo's pixels must be at least 1, not {self.max_pixels}.")
