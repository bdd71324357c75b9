"""Labels from a user's files: every accepted form, and the refusal of others."""

import csv
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from learning.labels.files import read_labels
from learning.labels.labels import Labels
from retrieval.catalogue.schema import ImageRow

Table = Callable[[str | bytes], Path]


def rows_of(photos: Path, names: Sequence[str]) -> list[ImageRow]:
    """Rows of a catalogue; photos are numbered 10, 11, … in the order of `photos`."""
    return [ImageRow(number=10 + i, path=str(photos / name), name=name) for i, name in enumerate(names)]


def shown(labels: Labels) -> dict[str, list[int]]:
    return {labelled.name: sorted(labelled.positives) for labelled in labels.objects}


def refusal(source: Path, rows: Sequence[ImageRow], **options: bool) -> str:
    """The one sentence that refuses a source."""
    with pytest.raises(CairnError) as caught:
        read_labels(source, rows, **options)
    sentence = str(caught.value)
    assert sentence.endswith(".") and "\n" not in sentence
    return sentence


# Tables

NAMES = ("abbey_1.jpg", "abbey_2.jpg", "rome/bridge.jpg", "bridge_2.png", "one, two; three.jpg", "road.jpg")
ROWS = rows_of(Path("/photos"), NAMES)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "labels.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


EXPECTED = {"abbey": [10, 11], "bridge": [12, 13]}


@pytest.mark.parametrize(
    "content",
    [
        "abbey_1.jpg,abbey\nabbey_2.jpg,abbey\nrome/bridge.jpg,bridge\nbridge_2.png,bridge\n",
        "photo,label\nabbey_1.jpg,abbey\nabbey_2.jpg,abbey\nrome/bridge.jpg,bridge\nbridge_2.png,bridge",
        "Image;Landmark\r\nabbey_1.jpg;abbey\r\nabbey_2.jpg;abbey\r\nrome/bridge.jpg;bridge\r\nbridge_2.png;bridge\r\n",
        "abbey_1.jpg\tabbey\nabbey_2.jpg\tabbey\nrome/bridge.jpg\tbridge\nbridge_2.png\tbridge\n",
        "/photos/abbey_1.jpg, abbey\nabbey_2, abbey \n\n /photos/rome/bridge.jpg ,bridge\nbridge_2,bridge,seen twice\n",
        'abbey_1.jpg,"abbey"\n"abbey_2.jpg",abbey\nbridge,bridge\nbridge_2,bridge\n"one, two; three.jpg",\nroad.jpg,\n',
        "abbey_1.jpg,abbey\nabbey_2.jpg,abbey\nabbey_1,abbey\nbridge,bridge\nbridge_2,bridge\n",  # one of them twice
    ],
    ids=["comma", "title", "semicolon", "tab", "paths, stems and spaces", "quotes and background", "again"],
)
def test_tables_are_read_as_people_write_them(table: Table, content: str) -> None:
    for encoding in ("utf-8", "utf-8-sig"):
        labels = read_labels(table(content.encode(encoding)), ROWS)
        assert shown(labels) == EXPECTED
        assert labels.asked == frozenset() and all(not labelled.junk for labelled in labels.objects)


def test_labels_may_hold_commas_where_semicolons_divide(table: Table) -> None:
    labels = read_labels(table("abbey_1;Abbey, the\nabbey_2;Abbey, the\n"), ROWS)
    assert shown(labels) == {"Abbey, the": [10, 11]}


def test_a_path_in_a_table_starts_from_the_working_folder_or_from_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    rows = [
        ImageRow(number=number, path=str(tmp_path / path), name=f"{number}")
        for number, path in enumerate(["here/a/1.jpg", "b/1.jpg", "c/1.jpg"], start=7)
    ]
    source = tmp_path / "labels.csv"
    source.write_text("a/1.jpg,x\nb/1.jpg,x\n../c/1.jpg,x\n")
    assert shown(read_labels(source, rows)) == {"x": [7, 8, 9]}


def test_a_first_line_is_a_label_where_it_could_be_one(table: Table) -> None:
    assert "'abbey_0' and 1 more of" in refusal(table("abbey_0,abbey\nabbey_1,abbey\nabbey_3,abbey\n"), ROWS)
    assert "'abbey_0.jpg' of" in refusal(table("abbey_0.jpg,ruin\nabbey_1,abbey\nabbey_2,abbey\n"), ROWS)
    assert shown(read_labels(table("road,label\nabbey_1,abbey\nabbey_2,abbey\n"), ROWS))["label"] == [15]


def test_a_title_that_is_like_the_name_of_a_photo_is_a_title(table: Table) -> None:
    rows = rows_of(Path("/photos"), ["Photo.jpg", "a.jpg", "b.jpg"])
    named = {
        label: len(numbers) for label, numbers in shown(read_labels(table("photo,label\na,one\nb,one\n"), rows)).items()
    }
    assert named == {"one": 2}


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0/\r\n"), min_size=1, max_size=8)
        .map(str.strip)
        .filter(lambda name: name not in ("", ".", "..")),
        min_size=2,
        max_size=6,
        unique=True,
    ),
    st.sampled_from(",;\t"),
)
def test_any_name_can_be_labelled_in_quotes(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], delimiter: str
) -> None:
    rows = rows_of(Path("/photos"), names)
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows((name, "Übergröße, 3") for name in names)
    source = tmp_path_factory.mktemp("table") / "labels.csv"
    source.write_bytes(text.getvalue().encode("utf-8"))
    assert shown(read_labels(source, rows)) == {"Übergröße, 3": [row.number for row in rows]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no labels: a line should be a photo and its label."),
        ("\n ,\n", "holds no labels"),
        ("photo,label\n", "holds no labels"),
        ("abbey_1.jpg\nabbey_2.jpg\n", "line 1: expected a photo and its label with a comma between them"),
        ("abbey_1;x\nabbey_2;x\nbridge_2\n", "line 3: expected a photo and its label with a semicolon between them"),
        ("abbey_1,x\n,x\n", "line 2: expected a photo and its label with a comma between them, found ',x'"),
        ("abbey_1,x\nabbey_1.jpg,y\n", "'abbey_1.jpg' of"),
        ("abbey_1,x\nabbey_1.jpg,y\n", "is labelled 'x' and 'y': keep one of them."),
        ("abbey_1,x\nabbey_1.jpg,\n", "is labelled 'x' and as background"),
        ("abbey_1,x\nabbey_2,y\n", "No object of"),
        ("abbey_1,\nabbey_2,\n", "has two photos in the collection, and pairs are what is learnt from"),
        ("abbey_1,x\nabbey_2,x\nruin,x\n", "The photo 'ruin' of"),
        (
            "abbey_1,x\nabbey_2,x\nruin,x\n",
            "is not in the collection: index what is missing, or leave it out with skip_missing",
        ),
        ("abbey_1,x\nruin,x\nhut,\nmill,x\nruin,x\n", "The photo 'ruin' and 2 more of"),
        ('abbey_1,x\n"abbey_2,x\n', "the quotes do not pair"),
        (b"abbey_1,x\nabbey_2,\xe4\n", "is not text in UTF-8: save the table as CSV in UTF-8."),
        ("abbey_1,x\nabbey_2,x\n".encode("utf-16"), "is not text in UTF-8"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(table: Table, content: str | bytes, said: str) -> None:
    source = table(content)
    sentence = refusal(source, ROWS)
    assert said in sentence and str(source) in sentence


def test_a_stem_of_several_photos_is_refused_and_their_names_are_not(table: Table) -> None:
    rows = rows_of(Path("/photos"), ["rome/1.jpg", "paris/1.jpg", "2.jpg"])
    sentence = refusal(table("1,x\n2,x\n"), rows)
    assert "'1' in" in sentence and "stands for 2 photos of the collection, such as /photos/rome/1.jpg and" in sentence
    assert shown(read_labels(table("rome/1.jpg,x\n2,x\nparis/1.jpg,\n"), rows)) == {"x": [10, 12]}


def test_photos_that_are_missing_can_be_left_out(table: Table) -> None:
    source = table("abbey_1,x\nruin.jpg,x\nabbey_2,x\nhut,y\n")
    assert "and 1 more" in refusal(source, ROWS)
    assert shown(read_labels(source, ROWS, skip_missing=True)) == {"x": [10, 11]}
    assert "No object" in refusal(table("ruin,x\nhut,x\n"), ROWS, skip_missing=True)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "There are no labels at" in refusal(tmp_path / "nothing.csv", ROWS)


# A folder for each object


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, list[ImageRow]]:
    """Two objects, one with photos deeper down, and what counts as background."""
    names = ["abbey/1.jpg", "abbey/2.jpg", "bridge/old/1.jpg", "bridge/new/1.jpg", "road.jpg"]
    for name in names:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "photos" / "abbey" / "notes.txt").touch()
    (tmp_path / "photos" / "empty").mkdir()
    (tmp_path / "photos" / ".thumbnails").mkdir()
    (tmp_path / "photos" / ".thumbnails" / "1.jpg").touch()
    rows = [*rows_of(tmp_path / "photos", names), ImageRow(number=99, path="/elsewhere/1.jpg", name="1.jpg")]
    return tmp_path / "photos", rows


def test_a_subfolder_is_an_object(
    folders: tuple[Path, list[ImageRow]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rows = folders
    assert shown(read_labels(folder, rows)) == EXPECTED
    monkeypatch.chdir(folder.parent)
    assert shown(read_labels(Path("photos"), rows)) == EXPECTED
    (tmp_path / "link").symlink_to(folder)
    assert shown(read_labels(tmp_path / "link", rows)) == EXPECTED


def test_a_subfolder_may_hold_links(folders: tuple[Path, list[ImageRow]], tmp_path: Path) -> None:
    folder, rows = folders
    sorted_photos = tmp_path / "sorted"
    for label, names in (("stone", ["abbey/1.jpg", "bridge/old/1.jpg"]), ("tar", ["road.jpg"])):
        (sorted_photos / label).mkdir(parents=True)
        for name in names:
            (sorted_photos / label / name.replace("/", " ")).symlink_to(folder / name)
    assert shown(read_labels(sorted_photos, rows)) == {"stone": [10, 12], "tar": [14]}
    (sorted_photos / "stone" / "road.jpg").symlink_to(folder / "road.jpg")
    sentence = refusal(sorted_photos, rows)
    assert "The photo 'tar/road.jpg' of" in sentence and "is labelled 'stone' and 'tar'" in sentence


def test_photos_in_subfolders_that_are_not_in_the_collection_are_named(folders: tuple[Path, list[ImageRow]]) -> None:
    folder, rows = folders
    (folder / "abbey" / "3.jpg").touch()
    assert "The photo 'abbey/3.jpg' of" in refusal(folder, rows)
    assert shown(read_labels(folder, rows, skip_missing=True)) == EXPECTED
    (folder / "castle").mkdir()
    (folder / "castle" / "1.jpg").touch()
    assert "No photo of the subfolder 'castle' of" in refusal(folder, rows)
    assert shown(read_labels(folder, rows, skip_missing=True)) == EXPECTED


def test_a_folder_without_labels_is_refused(folders: tuple[Path, list[ImageRow]]) -> None:
    folder, rows = folders
    assert "holds no labels: it should have a subfolder of photos for each object" in refusal(folder / "empty", rows)
    assert "holds no labels" in refusal(folder / "abbey", rows)
    (folder / "gt").mkdir()
    (folder / "gt" / "abbey_1_query.txt").touch()
    assert "its subfolder gt does: name that one." in refusal(folder, rows)


# Ground truth in the layout of Oxford5K

STEMS = [f"{name}_{number}" for name in ("abbey", "bridge", "castle") for number in range(6)]  # 10 to 27


@pytest.fixture
def truth(tmp_path: Path) -> Callable[..., Path]:
    """Writes a query: its photo and lists."""

    def write(name: str, stem: str, good: str = "", ok: str = "", junk: str = "") -> Path:
        folder = tmp_path / "gt"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}_query.txt").write_text(f"{stem} 0 0 10 10\n")
        for part, listed in (("good", good), ("ok", ok), ("junk", junk)):
            (folder / f"{name}_{part}.txt").write_text("".join(f"{photo}\n" for photo in listed.split()))
        return folder

    return write


OXFORD = rows_of(Path("/photos"), [f"{stem}.jpg" for stem in STEMS])


def test_a_ground_truth_may_write_endings_and_case_otherwise(truth: Callable[..., Path]) -> None:
    folder = truth("abbey_1", "abbey_0.JPG", good="abbey_1.JPG Abbey_2 abbey_3", junk="abbey_5.jpg")
    (labelled,) = read_labels(folder, OXFORD).objects
    assert (sorted(labelled.positives), sorted(labelled.junk)) == ([11, 12, 13], [15])
    assert "not in the collection" in refusal(truth("abbey_1", "abbey_0", good="abbey_1.png abbey_2"), OXFORD)


def test_queries_of_one_name_show_one_object_where_they_find_the_same(truth: Callable[..., Path]) -> None:
    truth("abbey_1", "abbey_0", good="abbey_0 abbey_1 abbey_2", junk="abbey_5 bridge_1 abbey_4")
    truth("abbey_2", "abbey_1", good="abbey_1 abbey_3", ok="abbey_2 abbey_4", junk="abbey_0")
    # Two bridges with only the query photo in common; the third query joins neither.
    truth("bridge_1", "bridge_0", good="bridge_1 bridge_2 castle_0", junk="bridge_0")
    truth("bridge_2", "castle_0", good="bridge_3 castle_0 bridge_4")
    truth("bridge_3", "bridge_5", ok="bridge_2 bridge_5")
    # Another name, despite common photos; its photo is a separate file.
    folder = truth("castle", "a file of its own", good="bridge_2 castle_1")
    labels = read_labels(folder, OXFORD)
    assert shown(labels) == {"abbey": [12, 13, 14], "bridge_1": [17, 18], "bridge_2": [19, 20], "castle": [18, 23]}
    # A positive of another query is no junk, nor is a query photo.
    assert [sorted(labelled.junk) for labelled in labels.objects] == [[15, 17], [], [], []]
    assert labels.asked == {10, 11, 16, 21, 22}


def test_a_query_joins_groups_that_had_nothing_in_common(truth: Callable[..., Path]) -> None:
    truth("abbey_1", "abbey_0", good="abbey_1 abbey_2")
    truth("abbey_2", "abbey_0", good="abbey_3 abbey_4")
    folder = truth("abbey_3", "abbey_0", ok="abbey_2 abbey_3")
    assert shown(read_labels(folder, OXFORD)) == {"abbey": [11, 12, 13, 14]}


def test_ground_truth_that_cannot_be_used_is_refused(truth: Callable[..., Path]) -> None:
    folder = truth("abbey_1", "abbey_0", good="abbey_1 abbey_0")
    assert "has two photos in the collection except the query photos" in refusal(folder, OXFORD)
    truth("abbey_1", "abbey_0", good="abbey_1 abbey_2 abbey_7", junk="abbey_9 abbey_8")
    assert "The photo 'abbey_7' and 2 more of" in refusal(folder, OXFORD)
    assert shown(read_labels(folder, OXFORD, skip_missing=True)) == {"abbey": [11, 12]}
    twice = [*OXFORD, ImageRow(number=99, path="/other/abbey_2.png", name="abbey_2.png")]
    assert "'abbey_2' in" in refusal(folder, twice, skip_missing=True)
    truth("abbey_1", "abbey_0", good="abbey_1 abbey_2", junk="abbey_2")
    assert "'abbey_2' is listed as good too; keep one of them." in refusal(folder, OXFORD)
    (folder / "abbey_1_ok.txt").unlink()
    assert "lacks the file" in refusal(folder, OXFORD)


@pytest.mark.skipif("CAIRN_DATASETS" not in os.environ, reason="CAIRN_DATASETS is not set")
def test_the_published_ground_truth_of_paris_is_taken_as_it_is() -> None:
    folder = Path(os.environ["CAIRN_DATASETS"]) / "paris6k_gt"
    stems = sorted({line for path in folder.glob("*.txt") for line in path.read_text().split()})
    labels = read_labels(folder, rows_of(Path("/photos"), [f"{stem}.jpg" for stem in stems]))
    assert len(labels.objects) == 11 and len(labels.asked) == 55
    # 1791 positives (Yan13, table I), one of which shows two landmarks: the Eiffel Tower and Les Invalides.
    assert sum(len(labelled.positives) for labelled in labels.objects) == 1791 - 55
    relevance = labels.relevance(np.arange(10, 10 + len(stems)), np.random.default_rng(0))
    assert np.bincount(relevance.objects).max() == 80 and len(relevance.names) == 11


def test_null_characters_and_endless_entries_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    for text, says in (
        ("a.jpg,x\np\x002.jpg,x\n", "null characters"),
        ("a" * 200_000 + ",x\n", "a cell has more than 131072 characters"),
    ):
        path.write_text(text)
        with pytest.raises(CairnError, match=says):
            read_labels(path, [])
