"""Hidden photos, such as copies: lists, answers and groups leave them out; they stay in the collection."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.database import chunks
from retrieval.catalogue.photos import indexed_among
from retrieval.catalogue.schema import BULK, HiddenRow


def hidden_photos(session: Session) -> frozenset[int]:
    """Numbers of the photos that are hidden."""
    return frozenset(session.scalars(sa.select(HiddenRow.number)))


def hidden_among(session: Session, numbers: Sequence[int]) -> list[int]:
    """Those of some photos that are hidden."""
    hidden = sa.select(HiddenRow.number)
    return [one for some in chunks(numbers) for one in session.scalars(hidden.where(HiddenRow.number.in_(some)))]


def hide(session: Session, numbers: Sequence[int], because: str = "") -> list[int]:
    """Hide photos of the collection, with a reason such as "duplicate"; return those not hidden before, ascending."""
    wanted = sorted({int(number) for number in numbers})
    hidden = set(hidden_among(session, wanted))
    new = [number for number in indexed_among(session, wanted) if number not in hidden]
    session.add_all(HiddenRow(number=number, because=because) for number in new)
    return new


def show(session: Session, numbers: Sequence[int]) -> None:
    """Unhide photos."""
    for some in chunks([int(number) for number in numbers]):
        session.execute(sa.delete(HiddenRow).where(HiddenRow.number.in_(some)), execution_options=BULK)
