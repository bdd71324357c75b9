"""Files of rankings: every form is read equally, round trips, and errors."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.rankings.files import Rankings, check_table, read_rankings, write_rankings
from index.errors import CairnError

RANKED = {"bridge_1": ["a", "c", "b"], "tower_2": ["c"]}
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(lambda name: name == name.strip())


def test_every_form_says_the_same(tmp_path: Path) -> None:
    forms = {
        "plain.csv": "query,rank,photo\nbridge_1,1,a\nbridge_1,3,b\ntower_2,1,c\nbridge_1,2,c\n",
        "scored.csv": "\ufeffScore;Photo;Query;Rank\n"
        "0,9;c;bridge_1;2\n1,5;a;bridge_1;1\n-1;c;tower_2;0\n;b;bridge_1;9\n",
        "bare.tsv": "bridge_1\t0\ta\t9.5\n\nbridge_1\t1\tc\t4\ntower_2\t0\tc\t3\nbridge_1\t2\tb\t1\n",
        "table.txt": "bridge_1,1,a\nbridge_1,2,c\nbridge_1,3,b\ntower_2,1,c\n",
        "lists.json": json.dumps(RANKED),
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    folder = tmp_path / "texts"
    folder.mkdir()
    for query, photos in RANKED.items():
        (folder / f"{query}.txt").write_text("\n".join(["", *photos, ""]))
    (folder / "readme.md").write_text("no ranking")
    for path in (*(tmp_path / name for name in forms), folder):
        read = read_rankings(path)
        assert read.photos == RANKED, path
        assert bool(read.notes) == (path.name == "scored.csv")  # its ranks 1, 2, 9 have a gap
    assert read_rankings(folder / "tower_2.txt").photos == {"tower_2": ["c"]}


RANKINGS = st.dictionaries(NAMES, st.lists(NAMES, min_size=1, unique=True), min_size=1)


@given(ranked=RANKINGS, hard=st.none() | RANKINGS, marked=st.booleans())
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    ranked: dict[str, list[str]],
    hard: dict[str, list[str]] | None,
    marked: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / "rankings.csv"
    distractors = {next(iter(ranked.values()))[0]} if marked else set()
    written = Rankings(ranked, str(path), protocols={"hard": hard} if hard else {}, distractors=distractors)
    write_rankings(path, written)
    assert read_rankings(path) == written


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "", "no ranking"),
        ("a.csv", "query,rank,photo\n", "no ranking"),
        ("a.csv", "photo,query\nx,y\n", "its columns are query, rank and photo"),
        ("a.csv", "query,rank,photo\nq,1,x\nq,one,y\n", "line 3: the rank 'one'"),
        ("a.csv", "query,rank,photo\nq,1,x\nq,2\n", "line 3: the row is too short"),
        ("a.csv", "query,rank,photo\nq,1,x\n,2,y\n", "line 3: the query is missing"),
        ("a.csv", "q,1,x\nq,1,y\n", "the query 'q' has two photos of rank 1"),
        ("a.json", "[1]", "must be an object of lists of names"),
        ("a.json", '{"q": ["x", 3]}', "the query 'q' has something else"),
        ("a.json", "{", "cannot be read as JSON"),
    ],
)
def test_what_is_no_ranking_is_said(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(CairnError, match=said):
        read_rankings(path)


def test_what_is_not_there_or_cannot_be_written_is_said(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.csv", "There is no file"), (tmp_path, "holds no rankings")):
        with pytest.raises(CairnError, match=said):
            read_rankings(path)
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "a.xls", tmp_path / "no" / "a.csv"):
        with pytest.raises(CairnError):
            check_table(path)
