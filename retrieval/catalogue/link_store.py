"""Links: results of verifying each photo of a collection with others, stored so that no photo is queried twice.

The catalogue stores the links of a photo as bytes. All are of one kind, named by a text (the vocabulary, for example):
links of another kind replace all stored ones.
"""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.orm import Session

from index.errors import CairnError
from retrieval.catalogue.database import chunks
from retrieval.catalogue.schema import BULK, LinkRow, Setting
from retrieval.catalogue.settings import keep_setting

KIND_KEY = "cairn.links"
"""Setting of the catalogue: the kind of the links that it keeps."""


def begin_links(session: Session, kind: str) -> None:
    """Delete all links between photos, and store those of another kind from now on."""
    session.execute(sa.delete(LinkRow), execution_options=BULK)
    keep_setting(session, KIND_KEY, kind)


def keep_links(session: Session, kind: str, found: Mapping[int, bytes]) -> None:
    """Store the links of photos, by number; raises CairnError if links of another kind were stored meanwhile."""
    if session.get_one(Setting, KIND_KEY).value != kind:
        raise CairnError("Another process looks for other links meanwhile: run the command again when it has ended.")
    for numbers in chunks(list(found)):
        session.execute(sa.delete(LinkRow).where(LinkRow.number.in_(numbers)), execution_options=BULK)
        session.add_all(LinkRow(number=number, found=found[number]) for number in numbers)
        session.flush()


def links_in(session: Session, numbers: Sequence[int] | None = None) -> dict[int, bytes]:
    """Links of photos, all or some, by ascending number; without damaged ones."""
    every = sa.select(LinkRow).order_by(LinkRow.number)
    links: dict[int, bytes] = {}
    for some in [None] if numbers is None else chunks(sorted(numbers)):
        rows = session.scalars(every if some is None else every.where(LinkRow.number.in_(some)))
        links.update((row.number, row.found) for row in rows if row.is_whole)
    return links


def links_after(session: Session, number: int, limit: int) -> list[tuple[int, bytes]]:
    """The first photos after a number that have links, with these; without a check for damage."""
    query = sa.select(LinkRow.number, LinkRow.found).where(LinkRow.number > number)
    rows = session.execute(query.order_by(LinkRow.number).limit(limit))
    return [(int(one), found) for one, found in rows if isinstance(found, bytes)]
