"""Estimate quickly whether enough photos of a collection show the same to improve its search."""

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.photos import rows_of
from retrieval.groups.groups import NotGrouped, read_groups
from retrieval.library.searches import Searches
from retrieval.search.answers import ask_with_photo
from retrieval.search.options import SearchOptions

SAMPLE = 24
"""Number of sample photos to search for if photos were never linked."""
SECONDS = 6.0
"""Seconds after which no further search begins."""
# About half of the photos are for training, and evaluation needs at least two other scenes.
_SCENES = 4  # fewest groups for a likely verdict
_PHOTOS = 2 * _SCENES  # the same, as photos in groups, estimated from a sample


@dataclass(frozen=True)
class Sameness:
    """Estimate of the number of photos that show the same as another."""

    photos: int  # of the collection
    looked: int  # photos examined: all if they were linked before, else a sample
    alike: int  # of those: photos that show the same as another
    scenes: int | None  # number of their groups; None for a sample
    enough: bool  # whether they most likely suffice to measure an improvement

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """The same in words."""
        if self.scenes is not None:
            what = f"{self.alike:,} of {self.photos:,} photos show the same as another, in {self.scenes:,} groups"
        else:
            what = f"Of {self.looked:,} photos that were looked at, {self.alike:,} show the same as another"
        if self.enough:
            return f"{what}: enough to tell whether searches find more."
        return f"{what}: most likely too few to tell whether searches find more."


def look(searches: Searches, *, sample: int = SAMPLE, seconds: float = SECONDS) -> Sameness:
    """Estimate the number of photos that show the same as another, by links or by searching for an even sample."""
    collection = searches.collection
    numbers = collection.catalogue.read(numbers_of, PhotoFilter()).tolist()
    try:
        groups = read_groups(collection)
    except (NotGrouped, CairnError):
        groups = None
    if groups is not None and not groups.out_of_date:
        own = [set(one.photos) - set(one.duplicates) for one in groups.groups]  # copies are no evidence
        own = [photos for photos in own if len(photos) > 1]
        alike = sum(len(photos) for photos in own)
        return Sameness(len(numbers), len(numbers), alike, len(own), len(own) >= _SCENES)
    places = np.unique(np.linspace(0, len(numbers) - 1, sample).astype(int)) if len(numbers) > 1 else ()
    chosen = [numbers[place] for place in places]
    rows = {row.number: row for row in collection.catalogue.read(rows_of, chosen)}
    alike, looked, until = 0, 0, time.monotonic() + seconds
    for number in chosen:
        if time.monotonic() > until and looked:
            break
        try:
            query = ask_with_photo(rows[number], rows[number].name or "", None)
            answer = searches.search([query], SearchOptions(turns=1), top=4)
        except (CairnError, KeyError):  # for example, its file is missing
            continue
        looked += 1
        alike += any(one.found and one.number != number for one in answer)
    return Sameness(len(numbers), looked, alike, None, bool(looked) and alike * len(numbers) >= _PHOTOS * looked)
