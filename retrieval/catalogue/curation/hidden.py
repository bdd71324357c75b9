"""Photos that lists, answers and groups leave out, such as copies of others; they stay in the collection."""

from collections.abc import Sequence

import sqlalchemy as sa

from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.catalogue_reader import CatalogueReader
from retrieval.catalogue.database import chunks
from retrieval.catalogue.schema import INDEXED, HiddenRow, ImageRow


def hidden_photos(catalogue: CatalogueReader) -> frozenset[int]:
    """Numbers of the photos that are hidden."""
    with catalogue.reading() as session:
        return frozenset(session.scalars(sa.select(HiddenRow.number)))


def hidden_among(catalogue: CatalogueReader, numbers: Sequence[int]) -> list[int]:
    """Those of some photos that are hidden."""
    with catalogue.reading() as session:
        hidden = sa.select(HiddenRow.number)
        return [one for some in chunks(numbers) for one in session.scalars(hidden.where(HiddenRow.number.in_(some)))]


def hide(catalogue: Catalogue, numbers: Sequence[int], because: str = "") -> list[int]:
    """Hide photos.

    Parameters
    ----------
    catalogue : Catalogue
    numbers : sequence of int
        Of the photos; those that are not in the collection are left out.
    because : str
        Why, such as "duplicate".

    Returns
    -------
    list of int
        Those that were not hidden before, ascending.
    """
    new: list[int] = []
    with catalogue.writing() as session:
        for some in chunks(sorted({int(number) for number in numbers})):
            hidden = sa.select(HiddenRow.number).where(HiddenRow.number.in_(some))
            there = sa.select(ImageRow.number).where(ImageRow.number.in_(some), ImageRow.state == INDEXED)
            new += sorted(set(session.scalars(there)) - set(session.scalars(hidden)))
        session.add_all(HiddenRow(number=number, because=because) for number in new)
    return new


def show(catalogue: Catalogue, numbers: Sequence[int]) -> None:
    """Show photos again that were hidden."""
    with catalogue.writing() as session:
        for some in chunks([int(number) for number in numbers]):
            session.execute(
                sa.delete(HiddenRow).where(HiddenRow.number.in_(some)),
                execution_options={"synchronize_session": False},
            )
