"""The command line as a whole: options given twice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Indexed, Ran

Cairn = Callable[..., Ran]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("query", "c", "a.jpg", "--top", 3, "--top=5"), "--top"),
        (("query", "c", "a.jpg", "--box", 1, 2, 3, 4, "--box", 1, 2, 3, 4), "--box"),
        (("query", "c", "a.jpg", "--all", "--any"), "--all/--any"),
        (("evaluate", "retrieval", "--images", "a", "--gt", "g", "--images", "b"), "--images"),
        (("learn", "descriptor", "a", "--out", "a.npz", "--out", "b.npz"), "--out"),
        (("index", "c", "photos", "--upright", "--rotated"), "--upright/--rotated"),
    ],
)
def test_an_option_with_one_value_is_refused_where_it_is_given_twice(
    cairn: Cairn, command: tuple[object, ...], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cairn(*command).refused().startswith(f"{option} is given 2 times")
    assert not list(tmp_path.iterdir())


def test_what_may_be_repeated_may_be_repeated(indexed: Indexed, cairn: Cairn) -> None:
    query = ("query", indexed.folder, "coffee_001.jpg", "--turns", 1, "--json", "--json")
    assert cairn(*query, "--where", "a=b", "--where", "c=d", "--tag", "x", "--tag", "y").json["results"] == []
    assert cairn("query", "--top", 1, "--top", 2, "--help").code == 0
