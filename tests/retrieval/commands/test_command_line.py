"""The command line as a whole: options given twice, and how what is wrong is reported."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Indexed, Ran
from tests.support.command_tree import command_tree

Cairn = Callable[..., Ran]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("query", "c", "a.jpg", "--top", 3, "--top=5"), "--top"),
        (("query", "c", "a.jpg", "--box", 1, 2, 3, 4, "--box", 1, 2, 3, 4), "--box"),
        (("query", "c", "a.jpg", "--all", "--any"), "--all/--any"),
        (("evaluate", "retrieval", "--images", "a", "--gt", "g", "--gt", "h"), "--gt"),
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


WRONG = {
    "an unknown option": (("query", "c", "a.jpg", "--tpo", 3), "--top"),
    "an unknown command": (("qurey", "c", "a.jpg"), "qurey"),
    "an unknown command of a group": (("learn", "descriptors", "c"), "descriptors"),
    "a missing argument": (("query",), "collection"),
    "a missing option": (("learn", "descriptor", "c"), "--out"),
    "a missing value": (("query", "c", "a.jpg", "--box", 1, 2), "--box"),
    "a value of another kind": (("query", "c", "a.jpg", "--top", "many"), "--top"),
    "a value out of range": (("query", "c", "a.jpg", "--top", 0), "--top"),
    "a repeated option": (("query", "c", "a.jpg", "--top", 1, "--top", 2), "--top"),
    "a superfluous argument": (("info", "c", "d"), "d"),
    "no collection": (("query", "c", "a.jpg"), "c"),
    "no such photo": (("index", "c", "a.jpg"), "a.jpg"),
}


@pytest.mark.parametrize(("command", "named"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_one_sentence_and_with_json_an_object(
    cairn: Cairn, command: tuple[object, ...], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = cairn(*command).refused()
    assert named in plain
    first, *rest = command
    places = [(*command, "--json")] + [(first, "--json", *rest)] * (first != "learn")
    if named == "--box":
        places = places[1:]  # --json would be its third value
    for arguments in places:
        assert cairn(*arguments).refused() == plain  # which looks at standard output


def commands(app: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the command line, with how it is called."""
    for name, command in app.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


ALL = dict(commands(command_tree()))


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_every_command_with_json_tells_wrong_arguments_so(cairn: Cairn, command: tuple[str, ...]) -> None:
    if any("--json" in one.opts for one in ALL[command].params):
        assert "--no-such" in cairn(*command, "--json", "--no-such").refused()


def test_an_argument_that_only_looks_like_json_is_none(cairn: Cairn, tmp_path: Path) -> None:
    ran = cairn("query", tmp_path / "c", "--", "--json")
    assert (ran.code, ran.out) == (2, "")


def test_a_full_disk_is_an_object_too(
    cairn: Cairn, indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "c"))

    monkeypatch.setattr("retrieval.indexing.adding.index_photos", full)
    assert "No space left" in cairn("index", tmp_path / "c", indexed.photos, "--json").refused()
