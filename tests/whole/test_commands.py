"""The command line, end to end: what is printed, where, and with which exit code."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from index.similarity import SimilarityMatrix
from retrieval.collection.collection import Collection
from retrieval.library.opening import create
from retrieval.search.probability import FOUND
from tests.conftest import Indexed, Ran
from tests.support.hostile import UNREADABLE, photo, write_hostile_folder
from tests.support.paths import ROOT

Cairn = Callable[..., Ran]

QUERY = "coffee_001.jpg"
# see docs/reference/commands.md: at least these.
INDEX_KEYS = {
    "collection",
    "added",
    "unchanged",
    "failed",
    "images",
    "features",
    "words",
    "bytes_per_feature",
    "seconds",
}
INFO_KEYS = {
    "images",
    "features",
    "words",
    "segments",
    "bytes",
    "bytes_per_feature",
    "descriptor",
    "vocabulary",
    "failed",
}


def cairn_process(*arguments: object) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "cairn", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# A process counts as its own what its parent held when it was started, so that a small one stands between the tests,
# which hold much, and what is measured.
_MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, bool], dict, int]:
    """The hostile folder, its collection, what is readable, the report, and the largest memory in bytes."""
    root = tmp_path_factory.mktemp("hostile")
    readable = write_hostile_folder(root / "photos")
    command = ["index", root / "c.cairn", root / "photos", "--workers", 1, "--json"]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, sys.executable, "-m", "cairn", *map(str, command)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().isdigit()  # nothing but the figure
    unit = 1 if sys.platform == "darwin" else 1024
    return root / "photos", root / "c.cairn", readable, json.loads(done.stdout), int(done.stderr) * unit


# Index


def test_a_hostile_folder_is_indexed_and_nothing_is_lost(
    hostile: tuple[Path, Path, dict[str, bool], dict, int], cairn: Cairn
) -> None:
    photos, collection, readable, report, _ = hostile
    assert report.keys() >= INDEX_KEYS
    assert report["seconds"].keys() >= {"extract", "vocabulary", "assign", "write", "total"}
    assert (report["added"], report["images"]) == (sum(readable.values()), sum(readable.values()))
    failed = {Path(entry["path"]).name: entry["reason"] for entry in report["failed"]}
    assert failed.keys() == UNREADABLE.keys()
    for name, expected in UNREADABLE.items():
        assert expected in failed[name], name
        assert "\n" not in failed[name] and str(photos) not in failed[name]

    facts = cairn("info", collection, "--json").json
    assert facts["failed"] == report["failed"]
    assert facts["images"] == report["images"]
    text = cairn("info", collection)
    assert text.code == 0
    for name, reason in failed.items():
        assert f"{name}: {reason}" in text.out


def test_memory_stays_bounded(hostile: tuple[Path, Path, dict[str, bool], dict, int]) -> None:
    # The photos alone would take 3.6 GB decoded, and the animation's canvas 1 GB.
    assert hostile[4] < 900e6


@pytest.mark.parametrize("name", ["quotes ' and \".jpg", "100% %s %41.jpg", "new\nline.jpg", "<b>bold<b> & [red].jpg"])
def test_odd_names_survive_to_the_answer(
    hostile: tuple[Path, Path, dict[str, bool], dict, int], cairn: Cairn, name: str
) -> None:
    photos, collection, _, _, _ = hostile
    answer = cairn("query", collection, name, "--turns", 1, "--json").json
    best = answer["results"][0]
    assert answer["query"] == name
    assert (best["name"], best["path"]) == (name, str(photos / name))

    shown = cairn("query", collection, name, "--turns", 1, "--top", 1)
    assert shown.out.count("\n") == 1  # one line for one result, whatever is in its name
    assert shown.out.endswith(name.replace("\n", "\\n") + "\n")


def test_a_second_run_finds_all_unchanged_and_lists_the_damaged_again(
    hostile: tuple[Path, Path, dict[str, bool], dict, int], cairn: Cairn
) -> None:
    photos, collection, readable, report, _ = hostile
    again = cairn("index", collection, photos, "--workers", 1, "--json").json
    assert (again["added"], again["unchanged"]) == (0, sum(readable.values()))
    assert sorted(map(str, again["failed"])) == sorted(map(str, report["failed"]))
    assert again["images"] == report["images"]

    strict = cairn("index", collection, photos, "--workers", 1, "--strict", "--json")
    assert strict.code == 1
    assert strict.json["failed"]
    words = cairn("index", collection, photos, "--workers", 1, "--strict")
    assert words.code == 1
    assert not [name for name in UNREADABLE if name in words.out]  # told once; the rest is for info
    count = len(again["failed"])
    assert again["failed_before"] == count
    assert f"Of the failed, {count} failed before and are unchanged: cairn info lists them." in words.out


def test_failures_are_told_once_and_other_files_are_counted(tmp_path: Path, cairn: Cairn, indexed: Indexed) -> None:
    folder, collection = tmp_path / "photos", tmp_path / "c"
    (folder / "raw").mkdir(parents=True)
    photo("coffee").save(folder / "a.png")
    for name in ("one.jpg", "two.jpg"):
        (folder / name).write_bytes(b"no photo")
    for name in ("1.odt", "2.ODT", "raw/3.cr2", "raw/README", ".hidden.mp4", "4.odt"):
        (folder / name).write_bytes(b"x")
    (folder / "link.odt").symlink_to(folder / "1.odt")
    run = ("index", collection, folder, "--vocabulary", indexed.folder, "--workers", 1)
    said = cairn(*run).out
    assert said.count("\nfailed: ") == 2 and "Of the failed" not in said
    assert "Passed over: 3 .odt, 1 .cr2, 1 without an ending (not photos that Cairn can read)." in said
    report = cairn(*run, "--json").json
    assert report["passed_over"] == {".odt": 3, ".cr2": 1, "": 1}
    assert (len(report["failed"]), report["failed_before"]) == (2, 2)
    (folder / "two.jpg").write_bytes(b"no photo, another one")
    (folder / "three.jpg").write_bytes(b"no photo")
    said = cairn(*run).out
    assert "two.jpg: " in said and "three.jpg: " in said and "one.jpg: " not in said
    assert "Of the failed, 1 failed before" in said
    assert cairn("info", collection).out.count("failed: ") == 3
    (folder / "one.jpg").unlink()
    assert "Of the failed" not in cairn(*run[:2], folder / "a.png").out


def test_another_photo_of_the_same_path_takes_its_place(tmp_path: Path, cairn: Cairn) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    photo("coffee").save(folder / "a.png")
    photo("chelsea").save(folder / "b.png")
    command = ("index", tmp_path / "c", folder, "--words", 50, "--workers", 1, "--json")
    first = cairn(*command).json
    photo("rocket").save(folder / "b.png")
    second = cairn(*command).json
    assert (first["added"], second["added"], second["unchanged"], second["images"]) == (2, 1, 1, 2)
    assert cairn("query", tmp_path / "c", "b.png", "--turns", 1, "--json").json["results"][0]["name"] == "b.png"
    photo("chelsea").save(tmp_path / "old.png")
    found = cairn("query", tmp_path / "c", tmp_path / "old.png", "--turns", 1, "--json").json["results"]
    assert not any(entry["inliers"] for entry in found)  # what it showed before is gone


def test_the_same_photo_by_another_way_is_the_same(
    tmp_path: Path, cairn: Cairn, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "photos").mkdir()
    photo("coffee").save(tmp_path / "photos" / "a.png")
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    command = ("--words", 50, "--workers", 1, "--json")
    assert cairn("index", tmp_path / "c", tmp_path / "photos", *command).json["added"] == 1
    monkeypatch.chdir(tmp_path / "photos")
    for way in (".", "../photos", "../photos/a.png", tmp_path / "link", tmp_path / "link" / "a.png"):
        again = cairn("index", tmp_path / "c", way, *command).json
        assert (again["added"], again["unchanged"], again["images"]) == (0, 1, 1), way


def test_a_folder_without_a_readable_photo_is_reported(tmp_path: Path, cairn: Cairn) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(b"not a photo")
    (folder / "b.jpg").write_bytes(b"")
    run = cairn("index", tmp_path / "c", folder, "--json")
    assert run.code == 1
    assert {Path(entry["path"]).name for entry in run.json["failed"]} == {"a.jpg", "b.jpg"}
    assert (run.json["images"], run.json["words"]) == (0, 0)
    facts = cairn("info", tmp_path / "c", "--json").json
    assert facts["failed"] == run.json["failed"]
    assert facts["vocabulary"] is None
    assert "photos" in cairn("query", tmp_path / "c", folder / "a.jpg").refused()

    # A photo that shows nothing makes no vocabulary either, and is not lost.
    Image.new("L", (320, 240), 127).save(folder / "grey.png")
    run = cairn("index", tmp_path / "c", folder, "--json")
    assert run.code == 1
    assert {Path(entry["path"]).name for entry in run.json["failed"]} == {"a.jpg", "b.jpg", "grey.png"}

    # It goes in with the first that shows something; failures of files that are gone are forgotten.
    photo("coffee").save(folder / "c.png")
    (folder / "a.jpg").unlink()
    run = cairn("index", tmp_path / "c", folder, "--words", 50, "--json")
    assert run.code == 0
    assert (run.json["added"], run.json["images"]) == (2, 2)
    assert {Path(entry["path"]).name for entry in cairn("info", tmp_path / "c", "--json").json["failed"]} == {"b.jpg"}


def test_what_was_never_made_is_made_with_the_options_of_the_run_that_makes_it(tmp_path: Path, cairn: Cairn) -> None:
    photo("coffee").save(tmp_path / "a.png")
    (tmp_path / "bad.png").write_bytes(b"")
    assert cairn("index", tmp_path / "c", tmp_path / "bad.png", "--words", 70).code == 1
    assert cairn("index", tmp_path / "c", tmp_path / "a.png", "--words", 30, "--json").json["words"] == 30
    create(tmp_path / "d", words=40).close()
    assert cairn("index", tmp_path / "d", tmp_path / "a.png", "--json").json["words"] == 40


def test_what_is_no_file_is_listed_and_waited_for_by_nobody(tmp_path: Path, cairn: Cairn) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    photo("coffee").save(folder / "a.png")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "broken.jpg").symlink_to(folder / "nowhere.jpg")
    (folder / "folder.jpg").mkdir()
    (folder / "not\udcff text.jpg").write_bytes((folder / "a.png").read_bytes())
    run = cairn("index", tmp_path / "c", folder, "--words", 50, "--workers", 1, "--json").json
    assert run["added"] == 2  # a name that is no text too
    assert {Path(entry["path"]).name for entry in run["failed"]} == {"pipe.jpg", "broken.jpg"}
    assert cairn("info", tmp_path / "c", "--json").json["failed"] == run["failed"]


@pytest.mark.slow
def test_two_photos_of_one_name_keep_apart(tmp_path: Path, cairn: Cairn) -> None:
    for folder, name in (("x", "coffee"), ("y", "chelsea")):
        (tmp_path / "in" / folder).mkdir(parents=True)
        photo(name).save(tmp_path / "in" / folder / "1.png")
    photo("rocket").save(tmp_path / "in" / "1.jpg")
    command = ("--words", 60, "--workers", 1, "--json")
    assert cairn("index", tmp_path / "c", tmp_path / "in", *command).json["added"] == 3
    assert cairn("index", tmp_path / "d", tmp_path / "in" / "x", tmp_path / "in" / "y", *command).json["added"] == 2
    for collection, names in (("c", ("x/1.png", "y/1.png", "1.jpg")), ("d", ("1.png", "y/1.png"))):
        for name in names:
            best = cairn("query", tmp_path / collection, name, "--turns", 1, "--json").json["results"][0]
            assert best["name"] == name


def test_nothing_but_the_answer_is_on_standard_output(indexed: Indexed) -> None:
    with cairn_process("query", indexed.folder, QUERY, "--turns", 1, "--json") as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert out.count("\n") == 1
    assert json.loads(out)["results"][0]["name"] == QUERY


# Info


def test_a_collection_keeps_its_descriptor(indexed: Indexed, cairn: Cairn, tmp_path: Path) -> None:
    photo("coffee").save(tmp_path / "a.png")
    refusal = cairn("index", indexed.folder, tmp_path / "a.png", "--descriptor", "cairn").refused()
    assert "another descriptor than cairn" in refusal
    made = tmp_path / "learnt.cairn"
    cairn("index", made, tmp_path / "a.png", "--descriptor", "pr-proj", "--words", 40)
    assert cairn("info", made, "--json").json["descriptor"]["dim"] == 123
    again = cairn("index", made, tmp_path / "a.png", "--descriptor", "pr-proj", "--json").json
    assert (again["added"], again["unchanged"]) == (0, 1)


def test_info_tells_what_is_on_disk(indexed: Indexed, cairn: Cairn) -> None:
    facts = cairn("info", indexed.folder, "--json").json
    assert facts.keys() >= INFO_KEYS
    assert facts["descriptor"].keys() >= {"name", "dim", "fingerprint"}
    assert facts["vocabulary"].keys() >= {"words", "recall_at_1", "fingerprint", "trained_on"}
    assert (facts["descriptor"]["name"], facts["descriptor"]["dim"]) == ("rootsift", 128)

    arrays = list((indexed.folder / "segments").rglob("*.npy"))
    size = sum(path.stat().st_size for path in arrays)
    features = sum(len(np.load(path)) for path in arrays if path.name == "column_geometry.npy")
    assert facts["features"] == features
    assert sum(facts["bytes"].values()) == size
    assert facts["bytes_per_feature"] == round(size / features, 2)
    assert facts["segments"] == len(list((indexed.folder / "segments").iterdir()))
    assert 0.9 <= facts["vocabulary"]["recall_at_1"] <= 1
    text = cairn("info", indexed.folder).out
    assert f"{facts['bytes_per_feature']:.2f} bytes" in text


# Query


def test_an_answer_is_one_object_with_the_keys_of_the_contract(indexed: Indexed, cairn: Cairn) -> None:
    box = indexed.boxes["coffee_001"]
    answer = cairn("query", indexed.folder, QUERY, "--box", *box, "--json").json
    assert answer.keys() >= {"query", "box", "engine", "results", "seconds"}
    assert answer["seconds"].keys() >= {"extract", "search", "verify", "total"}
    assert (answer["query"], answer["engine"]) == (QUERY, "signatures-sp")
    assert answer["box"] == pytest.approx(box, abs=1e-3)
    for place, entry in enumerate(answer["results"]):
        assert entry.keys() >= {"rank", "name", "path", "score", "inliers", "homography"}
        assert entry["rank"] == place + 1
        assert np.isfinite(entry["score"])
        assert (entry["homography"] is None) == (entry["inliers"] == 0)
        assert 0 <= entry["probability"] <= 1 and entry["found"] == (entry["probability"] >= FOUND)
    assert answer["results"][0]["name"] == QUERY
    assert {entry["name"] for entry in answer["results"][:3]} == {f"coffee_00{view}.jpg" for view in (1, 2, 3)}
    assert len(cairn("query", indexed.folder, QUERY, "--turns", 1, "--top", 2, "--json").json["results"]) == 2


def test_swapped_and_fractional_corners_are_a_box_all_the_same(indexed: Indexed, cairn: Cairn) -> None:
    x0, y0, x1, y1 = (round(value) for value in indexed.boxes["coffee_001"])

    def ask(*box: float) -> tuple[list[float], list[tuple[str, float, int]]]:
        answer = cairn("query", indexed.folder, QUERY, "--turns", 1, "--box", *box, "--json").json
        return answer["box"], [(one["name"], one["score"], one["inliers"]) for one in answer["results"]]

    ordered = ask(x0, y0, x1, y1)
    assert ordered[0] == [x0, y0, x1, y1]
    for corners in ((x1, y1, x0, y0), (x1, y0, x0, y1), (x0, y1, x1, y0)):
        assert ask(*corners) == ordered
    fractional = ask(x0 - 0.25, y0 + 0.5, x1 + 0.125, y1)
    assert fractional[0] == [x0 - 0.25, y0 + 0.5, x1 + 0.125, y1]
    assert fractional[1][0][0] == QUERY
    # What reaches beyond the photo is cut off at its border.
    assert ask(-50, -1e9, 1e9, 2000)[0] == [0, 0, 639, 479]


def test_a_file_outside_the_collection_is_a_query_too(indexed: Indexed, cairn: Cairn, tmp_path: Path) -> None:
    with Image.open(indexed.photos / QUERY) as image:
        image.resize((480, 360)).save(tmp_path / "elsewhere.webp")
    results = cairn("query", indexed.folder, tmp_path / "elsewhere.webp", "--turns", 1, "--json").json["results"]
    assert results[0]["name"] == QUERY
    corners = np.array([[[0.0, 0], [479, 0], [479, 359], [0, 359]]])
    found = cv2.perspectiveTransform(corners, np.array(results[0]["homography"]))
    # What a change of size keeps is a pixel's edges, not its centre.
    np.testing.assert_allclose(found, (corners + 0.5) * 4 / 3 - 0.5, atol=6)


def test_several_photos_make_one_query(indexed: Indexed, cairn: Cairn) -> None:
    photos = ("coffee_001.jpg", "page_001.jpg")
    both = {}
    for how in ("--any", "--all"):
        answer = cairn("query", indexed.folder, *photos, how, "--turns", 1, "--json").json
        assert answer["query"] == list(photos)
        both[how] = answer["results"]
    single = [cairn("query", indexed.folder, name, "--turns", 1, "--json").json["results"] for name in photos]
    inliers = [{entry["name"]: entry["inliers"] for entry in results} for results in single]
    for entry in both["--any"]:
        assert entry["inliers"] == max(one.get(entry["name"], 0) for one in inliers)
    for entry in both["--all"]:
        assert entry["inliers"] == min(one.get(entry["name"], 0) for one in inliers)
    assert {entry["name"] for entry in both["--any"][:2]} == set(photos)


def test_a_query_that_shows_nothing_has_an_empty_answer(indexed: Indexed, cairn: Cairn, tmp_path: Path) -> None:
    for size in ((320, 240), (1, 1)):
        Image.new("L", size, 127).save(tmp_path / "grey.png")
        for engine in ("tf-idf", "tf-idf-sp", "raw"):
            run = cairn("query", indexed.folder, tmp_path / "grey.png", "--engine", engine, "--json")
            assert run.json["results"] == []
    assert cairn("query", indexed.folder, tmp_path / "grey.png").out == "Nothing found.\n"
    box = ("--box", 2, 2, 2.5, 2.5, "--picture", tmp_path / "out.png")  # a box without a single feature
    assert cairn("query", indexed.folder, QUERY, *box, "--json").json["results"] == []
    with Image.open(tmp_path / "out.png") as picture:
        assert picture.size[0] > 100


@pytest.mark.parametrize("extra", [(), ("--expand", "average"), ("page_001.jpg", "--any"), ("page_001.jpg", "--all")])
def test_a_picture_is_written_whatever_the_query(
    indexed: Indexed, cairn: Cairn, tmp_path: Path, extra: tuple[str, ...]
) -> None:
    run = cairn("query", indexed.folder, QUERY, *extra, "--turns", 1, "--picture", tmp_path / "out.jpg")
    assert run.code == 0
    assert f"Picture: {tmp_path / 'out.jpg'}" in run.out
    with Image.open(tmp_path / "out.jpg") as picture:
        assert picture.format == "JPEG"
        assert np.asarray(picture).std() > 10


# Wrong requests


def test_a_wrong_query_is_one_sentence_and_code_2(indexed: Indexed, cairn: Cairn, tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_bytes(b"no photo")
    ask = ("query", indexed.folder)
    assert "no collection" in cairn("query", tmp_path / "missing.cairn", QUERY).refused()
    assert "text.jpg" in cairn(*ask, tmp_path / "text.jpg").refused()
    assert "nowhere.jpg" in cairn(*ask, "nowhere.jpg").refused()
    assert cairn(*ask, "x" * 5000).refused()
    assert cairn(*ask, tmp_path).refused()
    assert "outside" in cairn(*ask, QUERY, "--box", 700, 10, 800, 90).refused()
    assert "numbers" in cairn(*ask, QUERY, "--box", "nan", 10, 800, 90).refused()
    assert "numbers" in cairn(*ask, QUERY, "--box", 0, 0, "inf", 90).refused()
    assert "one photo" in cairn(*ask, QUERY, QUERY, "--box", 0, 0, 9, 90).refused()
    assert "'magic'" in cairn(*ask, QUERY, "--engine", "magic").refused()
    assert "'magic'" in cairn(*ask, QUERY, "--expand", "magic").refused()
    assert ".gif" in cairn(*ask, QUERY, "--picture", tmp_path / "out.gif").refused()
    assert "missing" in cairn(*ask, QUERY, "--picture", tmp_path / "missing" / "out.jpg").refused()
    assert cairn(*ask, QUERY, "--catalogue", "not an address").refused()
    assert cairn(*ask, QUERY, "--catalogue", "nosuch://database").refused()


def test_a_wrong_index_is_one_sentence_and_leaves_nothing_behind(
    indexed: Indexed, cairn: Cairn, tmp_path: Path
) -> None:
    photo("coffee").save(tmp_path / "a.png")
    good = ("index", tmp_path / "c", tmp_path / "a.png")
    assert "'magic'" in cairn(*good, "--descriptor", "magic").refused()
    assert "'magic'" in cairn(*good, "--detector", "magic").refused()
    assert "'magic'" in cairn(*good, "--search", "magic").refused()
    assert "scale" in cairn(*good, "--measurement-scale", "-2").refused()
    assert "scale" in cairn(*good, "--measurement-scale", "nan").refused()
    assert "missing" in cairn("index", tmp_path / "c", tmp_path / "missing").refused()
    assert "vocabulary" in cairn(*good, "--vocabulary", tmp_path / "missing.cairn").refused()
    assert cairn(*good, "--vocabulary", indexed.folder, "--descriptor", "sift").refused()
    assert cairn(*good, "--catalogue", "not an address").refused()
    # Nothing of that counts: the first run that succeeds decides.
    made = cairn(*good, "--words", 40, "--json").json
    assert (made["images"], made["words"]) == (1, 40)
    assert cairn("info", tmp_path / "c", "--json").json["descriptor"]["name"] == "rootsift"
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["c"]

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("Dear")
    assert "choose a new folder for the collection" in cairn("index", tmp_path / "other", tmp_path / "a.png").refused()
    assert "choose a new folder for the collection" in cairn("index", tmp_path / "a.png", tmp_path / "a.png").refused()
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["letter.txt"]
    assert "keep" in cairn("query", tmp_path / "c", "a.png", "--engine", "raw").refused()
    assert "another vocabulary" in cairn(*good, "--vocabulary", indexed.folder).refused()


@pytest.mark.parametrize(
    "arguments", [("--seed", -1), ("--seed", 2**31), ("--words", -1), ("--workers", -1), ("--words", "x"), ("-x",)]
)
def test_what_the_command_line_itself_refuses_has_code_2_as_well(
    cairn: Cairn, tmp_path: Path, arguments: tuple[object, ...]
) -> None:
    photo("coffee").save(tmp_path / "a.png")
    run = cairn("index", tmp_path / "c", tmp_path / "a.png", *arguments)
    assert (run.code, run.out) == (2, "")
    assert str(arguments[0]) in run.err
    assert not (tmp_path / "c").exists()


def test_damage_is_one_sentence_and_code_2(indexed: Indexed, cairn: Cairn, tmp_path: Path) -> None:
    def damaged(part: str, content: bytes) -> Path:
        folder = tmp_path / "c.cairn"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(indexed.folder, folder)
        (path,) = folder.glob(part)
        path.write_bytes(content)
        return folder

    wrong = [
        ("catalogue.sqlite", b"not a database " * 300),
        ("collection.toml", b"format = "),
        ("collection.toml", b"\xff\xfe"),
        ("collection.toml", b'format = 1\nwords = "many"\n'),
        ("collection.toml", b"format = 1\nsurprise = 3\n"),
        ("collection.toml", b"format = 1\n[features.regions]\ndetector = 'magic'\n"),
        ("collection.toml", b"format = 99\n"),
        ("segments/000001/meta.json", b"{}"),
        ("segments/000001/word_lists.npy", b"\x93NUMPY"),
        ("vocabulary/meta.json", b"[]"),
        ("vocabulary/centres.npy", b""),
    ]
    for part, content in wrong:
        folder = damaged(part, content)
        assert cairn("query", folder, QUERY, "--turns", 1).refused(), part
        if not part.startswith("segments"):  # of which the catalogue alone is asked, where there is nothing to add
            assert cairn("info", folder, "--json").refused(), part
            assert cairn("index", folder, indexed.photos).refused(), part
    (folder / "catalogue.sqlite").unlink()
    assert "catalogue" in cairn("info", folder).refused()


# A catalogue elsewhere


def test_a_catalogue_in_postgresql(
    indexed: Indexed,
    cairn: Cairn,
    tmp_path: Path,
    postgresql: Callable[[], str],
) -> None:
    address = ("--catalogue", postgresql())
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("coffee", "chelsea"):
        photo(name).save(folder / f"{name} % <b>\n'.png")
    (folder / "bad.jpg").write_bytes(b"")
    made = cairn("index", tmp_path / "c", folder, *address, "--words", 60, "--workers", 1, "--json").json
    assert (made["added"], len(made["failed"])) == (2, 1)
    assert not (tmp_path / "c" / "catalogue.sqlite").exists()
    again = cairn("index", tmp_path / "c", folder, *address, "--workers", 1, "--json").json
    assert (again["added"], again["unchanged"], len(again["failed"])) == (0, 2, 1)
    name = "coffee % <b>\n'.png"
    answer = cairn("query", tmp_path / "c", name, *address, "--turns", 1, "--json").json
    assert answer["results"][0]["name"] == name
    assert cairn("info", tmp_path / "c", *address, "--json").json["images"] == 2
    # Who forgets the address learns what is missing.
    assert "--catalogue" in cairn("info", tmp_path / "c").refused()
    assert "--catalogue" in cairn("index", tmp_path / "c", folder).refused()


# Evaluate


def test_evaluate_prints_the_contract(
    indexed: Indexed, cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gt").mkdir()
    for path in indexed.gt.glob("coffee_1_*"):
        shutil.copy(path, tmp_path / "gt")
    command = ("evaluate", "retrieval", "--images", indexed.photos, "--gt", tmp_path / "gt", "--max-side", 320)
    keep = ("--workers", 1, "--turns", 1, "--collection", tmp_path / "kept.cairn")
    report = cairn(*command, *keep, "--json").json
    assert report.keys() >= {"mAP", "queries", "engine", "descriptor", "vocabulary", "seconds"}
    assert report["vocabulary"].keys() >= {"words", "trained_on"}
    assert [query.keys() >= {"name", "ap", "seconds"} for query in report["queries"]] == [True]
    assert report["mAP"] == report["queries"][0]["ap"] == 1
    text = cairn(*command, *keep)
    assert text.code == 0
    assert "mAP 1.0000 over 1 queries" in text.out and "coffee_1" in text.out
    assert "looked at turned" not in text.out and report["turns"] == 1
    turned = (*command, "--workers", 1, "--turns", 2, "--collection", tmp_path / "kept.cairn")
    assert "looked at turned only where" in cairn(*turned).out
    assert "looked at turned" not in cairn(*turned, "--every-turn").out

    wrong = ("evaluate", "retrieval", "--images")
    assert "'magic'" in cairn(*command, "--engine", "magic").refused()
    assert "'magic'" in cairn(*command, "--descriptor", "magic").refused()
    assert "missing" in cairn(*wrong, tmp_path / "missing", "--gt", tmp_path / "gt").refused()
    assert "missing" in cairn(*wrong, indexed.photos, "--gt", tmp_path / "missing").refused()
    (tmp_path / "empty").mkdir()
    sentence = cairn(*wrong, tmp_path / "empty", "--gt", tmp_path / "gt").refused()
    assert str(tmp_path / "empty") in sentence and "cairn index" not in sentence
    assert cairn("evaluate", "oxford5k", "--root", tmp_path / "empty").refused()


# A learnt similarity


@pytest.fixture(scope="module")
def similarities(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder: same.npz is tf-idf, related.npz is not, other.npz is for another vocabulary."""
    folder = tmp_path_factory.mktemp("similarities")
    with Collection.open(indexed.folder) as collection:
        fingerprint, words = collection.vocabulary.fingerprint, collection.vocabulary.words
    same = SimilarityMatrix.identity(fingerprint, words)
    same.save(folder / "same.npz")
    SimilarityMatrix.identity("0" * 64, words).save(folder / "other.npz")
    first = np.arange(0, words - 1, 2, dtype=np.int32)
    values = np.full(len(first), 0.5, np.float32)
    SimilarityMatrix(fingerprint, same.diagonal, first, first + 1, values, {"neighbours": 1}).save(
        folder / "related.npz"
    )
    (folder / "damaged.npz").write_bytes((folder / "same.npz").read_bytes()[:-30])
    return folder


def test_a_query_by_a_learnt_similarity(indexed: Indexed, cairn: Cairn, similarities: Path) -> None:
    ask = ("query", indexed.folder, QUERY, "--turns", 1, "--engine", "tf-idf", "--json")
    plain = cairn(*ask).json
    same = cairn(*ask, "--similarity", similarities / "same.npz").json
    assert plain["similarity"] is None
    assert same["results"] == plain["results"]
    loaded = SimilarityMatrix.load(similarities / "same.npz")
    assert same["similarity"] == {
        "file": str(similarities / "same.npz"),
        "fingerprint": loaded.fingerprint,
        "neighbours": None,
        "pairs": 0,
    }
    related = cairn(*ask, "--similarity", similarities / "related.npz").json
    assert related["similarity"]["neighbours"] == 1 and related["similarity"]["pairs"] > 100
    assert related["results"][0]["name"] == QUERY
    assert related["results"] != plain["results"]
    for expand in ("none", "average"):  # and with what comes after scoring
        words = ("--engine", "tf-idf-sp", "--expand", expand, "--json")
        verify = ("query", indexed.folder, QUERY, "--turns", 1, *words)
        one, other = cairn(*verify).json, cairn(*verify, "--similarity", similarities / "same.npz").json
        assert one["results"] == other["results"]


def test_a_similarity_that_cannot_be_used_is_one_sentence_and_code_2(
    indexed: Indexed, cairn: Cairn, similarities: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"other": "learnt for another vocabulary", "damaged": "cairn learn similarity", "nowhere": "There is no"}
    for name, sentence in wrong.items():
        file = ("--similarity", similarities / f"{name}.npz")
        assert sentence in cairn("query", indexed.folder, QUERY, *file).refused()
    # What is known beforehand is said before any photo is read.
    monkeypatch.setattr("retrieval.indexing.adding.index_photos", lambda *_, **__: pytest.fail("photos were indexed"))
    monkeypatch.chdir(tmp_path)
    evaluate = ("evaluate", "retrieval", "--images", indexed.photos, "--gt", indexed.gt)
    for name, sentence in wrong.items():
        file = ("--similarity", similarities / f"{name}.npz")
        for there in (("--collection", indexed.folder), ("--vocabulary", indexed.folder)):
            assert sentence in cairn(*evaluate, *file, *there).refused()
        assert sentence in cairn(*evaluate, *file, "--vocabulary", indexed.folder / "vocabulary").refused()
        if name != "other":
            assert sentence in cairn(*evaluate, *file).refused()
    right = ("--similarity", similarities / "same.npz")
    assert "no vocabulary" in cairn(*evaluate, *right, "--vocabulary", tmp_path / "missing").refused()


@pytest.mark.slow
def test_evaluation_by_a_learnt_similarity(
    indexed: Indexed, cairn: Cairn, similarities: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gt").mkdir()
    for path in indexed.gt.glob("coffee_1_*"):
        shutil.copy(path, tmp_path / "gt")
    command = ("evaluate", "retrieval", "--images", indexed.photos, "--gt", tmp_path / "gt", "--engine", "tf-idf")
    keep = ("--vocabulary", indexed.folder, "--workers", 1, "--turns", 1, "--collection", tmp_path / "kept.cairn")
    plain = cairn(*command, *keep, "--json").json
    same = cairn(*command, *keep, "--similarity", similarities / "same.npz", "--json").json
    assert plain["similarity"] is None and same["similarity"]["file"] == str(similarities / "same.npz")
    assert (same["mAP"], same["queries"][0]["ap"]) == (plain["mAP"], plain["queries"][0]["ap"])
    assert "similarity" in cairn(*command, *keep, "--similarity", similarities / "related.npz").out
    # A vocabulary that is made on the way is another: said once it is known.
    fresh = ("--words", 40, "--workers", 1, "--max-side", 240, "--similarity", similarities / "same.npz")
    assert "another vocabulary" in cairn(*command, *fresh).refused()
    assert "--similarity" in cairn("evaluate", "paris6k", "--help").out


# All of it


@pytest.mark.slow
@pytest.mark.parametrize("command", ["query", "index", "info", "demo", "evaluate retrieval", "evaluate oxford5k"])
def test_the_help_of_a_command_loads_nothing_slow(command: str) -> None:
    code = (
        "import sys, cairn\n"
        f"sys.argv = ['cairn', *{command.split()!r}, '--help']\n"
        "try:\n    cairn.main()\n"
        "finally:\n"
        "    slow = {'numpy', 'cv2', 'faiss', 'scipy', 'sqlalchemy'} & sys.modules.keys()\n"
        "    print(slow or 'quick', file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "quick\n")
    assert "--" in done.stdout


def test_who_stops_a_run_learns_how_to_go_on(tmp_path: Path, indexed: Indexed) -> None:
    code = (
        "import os, signal, sys, cairn, retrieval.indexing.preparing\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # programs in the background are born without
        "retrieval.indexing.preparing.stage_all = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.argv = ['cairn', 'index', {str(tmp_path / 'c')!r}, {str(indexed.photos)!r}, '--json']\n"
        "cairn.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    sentence = "stopped; run the same command again to go on."
    assert (done.returncode, json.loads(done.stdout)) == (130, {"error": sentence})
    assert done.stderr.strip() == f"cairn: {sentence}"


def test_a_full_disk_is_one_sentence(tmp_path: Path, indexed: Indexed) -> None:
    """No file may grow beyond 200 KB: what a full disk looks like to the program."""
    code = (
        "import resource, signal, sys, cairn\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, {resource.RLIM_INFINITY}))\n"
        f"sys.argv = ['cairn', 'index', {str(tmp_path / 'c')!r}, {str(indexed.photos)!r}, '--workers', '1']\n"
        "cairn.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("cairn: ") and done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("module", ["typer", "retrieval.commands.console", "numpy"])
def test_ctrl_c_while_modules_are_imported_is_one_sentence(module: str) -> None:
    script = f"""
import sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from cairn import main
sys.argv = ["cairn", "info", "nowhere", *sys.argv[1:]]
main()
"""
    sentence = "stopped; run the same command again to go on."
    for more, out in ((["--json"], {"error": sentence}), ([], None)):
        command = [sys.executable, "-c", script, *more]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (ran.returncode, json.loads(ran.stdout or "null")) == (130, out)
        assert ran.stderr.strip() == f"cairn: {sentence}"


def test_a_photo_that_may_not_be_read_is_not_said_to_have_gone(
    indexed: Indexed, cairn: Cairn, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.stat

    def refuse(path: object, *arguments: object, **options: object) -> object:
        if str(path).endswith(QUERY):
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path, *arguments, **options)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr("retrieval.search.answers.os.stat", refuse)
    refused = cairn("query", indexed.folder, QUERY).refused()
    assert "cannot be read (Permission denied)" in refused and "no longer" not in refused


def test_after_a_move_the_message_tells_what_mends_it(indexed: Indexed, tmp_path: Path, cairn: Cairn) -> None:
    photos, collection = tmp_path / "photos", tmp_path / "c"
    photos.mkdir()
    shutil.copy(indexed.photos / QUERY, photos)
    run = ("index", collection, photos, "--vocabulary", indexed.folder, "--workers", 1)
    cairn(*run)
    photos.rename(tmp_path / "moved")
    photos.mkdir()
    mends = "if it was moved, run cairn index with the folder where it is now, and it is recognised by its content"
    assert cairn("query", collection, QUERY, "--json").json["results"][0]["name"] == QUERY  # by what is stored of it
    assert f"is no longer there: {mends}." in cairn("query", collection, QUERY, "--soft", 2).refused()
    assert f"Files that have gone: 1; {mends}." in cairn(*run).out
    assert "index the folder where they are now" in cairn("info", collection).out
    report = cairn("index", collection, tmp_path / "moved", "--json").json  # as the message says
    assert (report["moved"], report["added"]) == ([QUERY], 0)
    assert cairn("query", collection, QUERY, "--turns", 1, "--json").json["results"][0]["name"] == QUERY
