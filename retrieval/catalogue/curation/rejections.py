"""Photos that people marked as no match: pairs within the collection, and pairs with a photo from outside it.

Links, groups, borrowed features and learning respect `rejected_pairs`, answers to queries `rejected_for`.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.orm import Session, aliased

from retrieval.catalogue.database import chunks
from retrieval.catalogue.photos import indexed_among
from retrieval.catalogue.schema import BULK, INDEXED, ImageRow, QueryRejectionRow, RejectionRow


def rejected_pairs(session: Session) -> frozenset[tuple[int, int]]:
    """Pairs of indexed photos that are no match, by their two numbers, ascending."""
    one, other = aliased(ImageRow), aliased(ImageRow)
    query = (
        sa.select(RejectionRow.one, RejectionRow.other)
        .join(one, one.number == RejectionRow.one)
        .join(other, other.number == RejectionRow.other)
        .where(one.state == INDEXED, other.state == INDEXED)
    )
    return frozenset((int(first), int(second)) for first, second in session.execute(query))


def rejected_for(session: Session, number: int | None, sha256: str | None = None) -> list[int]:
    """Return the numbers of indexed photos that are no match of a query: a number, or the SHA-256 of a file."""
    rejected = _of_photo(session, number) if number is not None else set()
    if sha256 is not None:
        rejected.update(session.scalars(sa.select(QueryRejectionRow.number).where(QueryRejectionRow.sha256 == sha256)))
    return indexed_among(session, sorted(rejected)) if rejected else []


def has_rejections(session: Session) -> bool:
    """Whether any photo was ever marked as no match of another, or of a query."""
    columns = (RejectionRow.one, QueryRejectionRow.number)
    return any(session.scalar(sa.select(number).limit(1)) is not None for number in columns)


def reject(session: Session, query: int | str, numbers: Sequence[int]) -> list[int]:
    """Mark photos as no match of a query, a number or the SHA-256 of a file; return the newly rejected."""
    there = indexed_among(session, sorted(set(numbers)))
    if isinstance(query, str):
        known = set(session.scalars(sa.select(QueryRejectionRow.number).where(QueryRejectionRow.sha256 == query)))
        new = [number for number in there if number not in known]
        session.add_all(QueryRejectionRow(sha256=query, number=number) for number in new)
    else:
        known = _of_photo(session, query) | {query}
        is_there = bool(indexed_among(session, [query]))
        new = [number for number in there if number not in known] if is_there else []
        session.add_all(RejectionRow(one=min(query, one), other=max(query, one)) for one in new)
    return new


def take_back(session: Session, query: int | str, numbers: Sequence[int]) -> None:
    """Unmark photos as no match of a query: see `reject`."""
    for some in chunks([int(number) for number in numbers]):
        if isinstance(query, str):
            table = QueryRejectionRow
            meant = sa.and_(table.sha256 == query, table.number.in_(some))
            session.execute(sa.delete(table).where(meant), execution_options=BULK)
        else:
            as_one = sa.and_(RejectionRow.one == query, RejectionRow.other.in_(some))
            as_other = sa.and_(RejectionRow.other == query, RejectionRow.one.in_(some))
            session.execute(sa.delete(RejectionRow).where(sa.or_(as_one, as_other)), execution_options=BULK)


def _of_photo(session: Session, number: int) -> set[int]:
    """The photos that are no match of one of the collection."""
    others = sa.select(RejectionRow.other).where(RejectionRow.one == number)
    ones = sa.select(RejectionRow.one).where(RejectionRow.other == number)
    return {*session.scalars(others), *session.scalars(ones)}
