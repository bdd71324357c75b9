"""Facets: values of the photos that pass a filter, with numbers of photos, to narrow down further.

For fields with one value, those that could replace the filtered one count; for tags, additional ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.browsing import folders_of, months_of, values_of
from retrieval.catalogue.conditions import passing_conditions
from retrieval.catalogue.filters import SHOWN, PhotoFilter
from retrieval.catalogue.metadata_store import TAG, tag_counts
from retrieval.catalogue.schema import AlbumPhotoRow, AlbumRow, ImageRow, MetadataRow
from retrieval.metadata.fields import FIELDS

Counts = list[tuple[str, int]]


@dataclass(frozen=True)
class FacetCounts:
    """Values of photos, and numbers of photos of each: the most frequent first, except for folders and years."""

    folders: Counts  # in order; photos in subfolders do not count
    tags: Counts
    albums: list[tuple[int, str, int]]  # id, name and photos
    years: Counts  # in order
    fields: Mapping[str, Counts]  # by name of the field


def facets_of(session: Session, wanted: PhotoFilter = SHOWN, limit: int = 500) -> FacetCounts:
    """Facets of the photos that pass a filter; at most `limit` values of each, except folders and years."""
    years: dict[str, int] = {}
    for month, photos in months_of(session, replace(wanted, taken_from="", taken_to="")):
        if month:
            years[month[:4]] = years.get(month[:4], 0) + photos
    fields = {}
    for row in FIELDS.values():
        if row.facet:
            others = replace(wanted, **{row.name: getattr(SHOWN, row.name)})
            fields[row.name] = values_of(session, row.key, others)[:limit]
    return FacetCounts(
        folders=folders_of(session, replace(wanted, folder="")),
        tags=tag_counts(session, limit) if wanted == SHOWN else _tags(session, wanted, limit),
        albums=_albums(session, replace(wanted, album=None), limit),
        years=sorted(years.items()),
        fields=fields,
    )


def _which(session: Session, wanted: PhotoFilter) -> sa.ColumnElement[bool]:
    return sa.and_(ImageRow.name.is_not(None), *passing_conditions(session, wanted))


def _tags(session: Session, wanted: PhotoFilter, limit: int) -> Counts:
    """Tags, each in the spelling of one of the first photos."""
    passing = sa.select(ImageRow.number).where(_which(session, wanted))
    # Counted in an index, without reading rows; only displayed texts are read.
    count = sa.func.count(MetadataRow.number.distinct()).label("photos")
    counted = sa.select(MetadataRow.value_hash, count).where(MetadataRow.key == TAG, MetadataRow.number.in_(passing))
    most = counted.group_by(MetadataRow.value_hash).order_by(sa.desc("photos")).limit(limit).subquery()
    spelt = sa.select(MetadataRow.value).where(MetadataRow.key == TAG, MetadataRow.value_hash == most.c.value_hash)
    tag = spelt.order_by(MetadataRow.number).limit(1).correlate(most).scalar_subquery()
    counts = session.execute(sa.select(tag, most.c.photos)).all()
    return sorted(((tag, int(photos)) for tag, photos in counts), key=lambda one: (-one[1], one[0]))


def _albums(session: Session, wanted: PhotoFilter, limit: int) -> list[tuple[int, str, int]]:
    count = sa.func.count().label("photos")
    query = sa.select(AlbumRow.id, AlbumRow.name, count).join(AlbumPhotoRow, AlbumPhotoRow.album == AlbumRow.id)
    query = query.join(ImageRow, ImageRow.number == AlbumPhotoRow.number).where(_which(session, wanted))
    query = query.group_by(AlbumRow.id, AlbumRow.name).order_by(sa.desc("photos"), AlbumRow.name).limit(limit)
    return [(album, name, int(photos)) for album, name, photos in session.execute(query) if album is not None]
