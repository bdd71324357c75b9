"""Groups of photos that show the same, for `import cairn`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, overload

from index.attributes import some_of
from index.docstrings import documented
from index.text import csv_text
from retrieval.catalogue.photos import rows_of
from retrieval.collection.collection import Collection
from retrieval.groups.groups import FoundGroups as Found
from retrieval.groups.tables import group_rows, write_table
from retrieval.library.photos import Photo, cache_of, photos_of

_ROWS = 1_000  # photos that are read at a time


@documented
@dataclass(frozen=True, repr=False)
class Group(Sequence[Photo]):
    """Photos that show the same object or landmark: a sequence of `Photo`."""

    number: Annotated[int, "From 1, the group of most photos first."]
    photos: Annotated[tuple[Photo, ...], "At least two."]
    links: Annotated[int, "Number of their pairs that are verified by geometry."]
    duplicates: Annotated[Mapping[str, str], "From the name of a near duplicate to that of its original."] = field(
        repr=False, hash=False
    )
    kinds: Annotated[
        Mapping[str, str],
        'From the name of a near duplicate to its relation to the original: "copy" for all of it, "part", '
        '"framed" for all of it with a frame or bars, "negative", "turned" if rotated or mirrored, "grey" '
        "for all of it without colours.",
    ] = field(default_factory=dict, repr=False, hash=False)
    similar: Annotated[
        tuple[tuple[str, ...], ...], "Names of photos that are similar shots: different photos of nearly the same view."
    ] = field(default=(), repr=False)

    @property
    def cover(self) -> Photo:
        """The photo that stands for the group: the one of most features that repeats no other."""
        originals = [one for one in self.photos if one.name not in self.duplicates]
        return max(originals or self.photos, key=lambda one: (one.features, -one.number))

    def __repr__(self) -> str:
        return f"<Group {self.number}: {len(self.photos)} photos, such as {self.cover.name!r}>"

    def __len__(self) -> int:
        return len(self.photos)

    @overload
    def __getitem__(self, place: int) -> Photo: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Photo, ...]: ...
    def __getitem__(self, place: int | slice) -> Photo | tuple[Photo, ...]:
        return self.photos[place]

    def to_dict(self) -> dict[str, Any]:
        """Return number, names of the photos, links, duplicates, their kinds and similar shots, as plain values."""
        return {
            "group": self.number,
            "photos": [one.name for one in self.photos],
            "links": self.links,
            "duplicates": dict(self.duplicates),
            "kinds": dict(self.kinds),
            "similar": [list(names) for names in self.similar],
        }

    def _repr_html_(self) -> str:
        from retrieval.library.display.markup import photos_html

        return photos_html(self)


@documented
@dataclass(frozen=True, eq=False, repr=False)
class Groups(Sequence[Group]):
    """All groups of a collection: a sequence of `Group`, the largest first.

    ``pandas.DataFrame(group.to_dict() for group in groups)`` has a row for each.
    """

    groups: Annotated[tuple[Group, ...], "The groups."]
    inliers: Annotated[int, "Smallest number of verified matches that links two photos."]
    photos: Annotated[int, "Photos that were used as queries."]
    out_of_date: Annotated[bool, "Whether photos were added or removed since grouping."] = False
    augmented: Annotated[int | None, "Photos whose borrowed features were renewed; None without augmentation."] = None
    _table: str = field(default="", repr=False)

    def __repr__(self) -> str:
        return f"<{len(self.groups)} groups of {self.photos} photos>"

    def __len__(self) -> int:
        return len(self.groups)

    @overload
    def __getitem__(self, place: int) -> Group: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Group, ...]: ...
    def __getitem__(self, place: int | slice) -> Group | tuple[Group, ...]:
        return self.groups[place]

    def _repr_html_(self) -> str:
        from retrieval.library.display.markup import photos_html

        html = "".join(photos_html(one, f"Group {one.number}: {len(one)} photos", most=8) for one in self.groups[:20])
        more = f"<p>and {len(self.groups) - 20:,} more groups</p>" if len(self.groups) > 20 else ""
        return html + more or "<p>No two photos are linked.</p>"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts that ``cairn group --json`` prints."""
        return {
            "photos": self.photos,
            "inliers": self.inliers,
            "groups": len(self.groups),
            "grouped": sum(len(one.photos) for one in self.groups),
            "links": sum(one.links for one in self.groups),
            "duplicates": sum(len(one.duplicates) for one in self.groups),
            "kinds": dict(sorted(Counter(kind for one in self.groups for kind in one.kinds.values()).items())),
            "similar": sum(len(names) for one in self.groups for names in one.similar),
            "augmented": self.augmented,
        }

    def save_table(self, path: str | Path) -> Path:
        """Write a table (CSV) of the groups: group, name, path, duplicate_of, kind, similar_to.

        Parameters
        ----------
        path : path-like
            Output file.

        Returns
        -------
        Path
            The table.

        Raises
        ------
        CairnError
            It cannot be written there.
        """
        write_table(Path(path), self._table)
        return Path(path)


def make_groups(collection: Collection, found: Found) -> Groups:
    """Return groups with their photos and metadata."""
    numbers = sorted({number for group in found.groups for number in group.photos})
    photos: dict[int, Photo] = {}
    for start in range(0, len(numbers), _ROWS):
        rows = collection.catalogue.read(rows_of, numbers[start : start + _ROWS])
        photos |= {one.number: one for one in photos_of(collection.catalogue, rows, cache_of(collection.folder))}
    return Groups(
        groups=tuple(
            Group(
                group.number,
                tuple(photos[number] for number in group.photos),
                group.links,
                {photos[one].name: photos[other].name for one, other in sorted(group.duplicates.items())},
                {photos[one].name: kind for one, kind in sorted(group.kinds.items())},
                tuple(tuple(photos[one].name for one in some) for some in group.similar),
            )
            for group in found.groups
        ),
        **some_of(found, "inliers", "photos", "out_of_date", "augmented"),
        _table=csv_text(group_rows(collection, found.groups)),
    )
