"""Rows that were listed a moment ago."""

from retrieval.catalogue.schema import ImageRow
from retrieval.web import recent
from retrieval.web.recent import RecentRows


def row(number: int) -> ImageRow:
    return ImageRow(number=number, path=f"/{number}.jpg", name=f"{number}.jpg")


def test_rows_are_remembered_for_a_moment() -> None:
    now = [100.0]
    rows = RecentRows(lambda: now[0])
    rows.remember([row(1), row(2)])
    now[0] += recent.SECONDS - 1
    rows.remember([row(2)])
    found = rows.recall(1)
    assert found is not None and found.name == "1.jpg" and rows.recall(3) is None
    now[0] += 2
    assert rows.recall(1) is None and rows.recall(2) is not None


def test_of_too_many_the_oldest_go() -> None:
    rows = RecentRows(lambda: 0.0)
    rows.remember([row(number) for number in range(recent.MOST + 5)])
    assert [number for number in range(recent.MOST + 5) if rows.recall(number) is None] == [0, 1, 2, 3, 4]
