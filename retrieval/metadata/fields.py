"""What is known of a photo besides its pixels, whatever file or table it is from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metadata:
    """What is known of a photo; every text is clean (see `clean`)."""

    taken: str | None = None  # local time of the camera, as `retrieval.metadata.dates` writes dates
    camera: str | None = None  # make and model
    latitude: float | None = None  # degrees north, WGS 84; both or none
    longitude: float | None = None  # degrees east
    title: str | None = None
    tags: tuple[str, ...] = ()  # distinct, ignoring case
