"""Global descriptors: where they come from, what they do in searches, and that they are kept whole."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

import cairn as library
from index.errors import CairnError
from index.extensions import ExtensionMissing
from retrieval.collection.global_rows import GlobalRows, read_global
from retrieval.library.testing import check_global_descriptor
from tests.conftest import Indexed, Ran
from tests.support.browser import chromium as chromium
from tests.support.browser import visiting, wait_for_results
from tests.support.live import client_of, serving
from tests.support.paths import ROOT
from tests.support.toy_extensions import Colours, forget, install, no_extensions  # noqa: F401


@pytest.fixture
def made(indexed: Indexed, tmp_path: Path) -> Iterator[library.Collection]:
    shutil.copytree(indexed.folder, tmp_path / "c.cairn")
    with library.open(tmp_path / "c.cairn") as collection:
        yield collection


def _pixels(path: str) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


def _rows(collection: library.Collection) -> dict[str, np.ndarray]:
    """A row for each photo, computed here."""
    found = {}
    for photo in collection:
        row = Colours().describe(_pixels(photo.path))
        found[photo.name] = row / np.linalg.norm(row)
    return found


def test_a_global_descriptor_keeps_its_contract() -> None:
    check_global_descriptor(Colours())
    worse = Colours()
    worse.dim = 47
    with pytest.raises(AssertionError, match="colours gives no 47 numbers"):
        check_global_descriptor(worse)


def test_photos_are_ranked_by_the_angle_of_their_rows(made: library.Collection) -> None:
    done = made.add_global_descriptors(Colours(), workers=1)
    assert done.described == done.photos == len(made) and not done.failed
    rows = _rows(made)
    requested = next(iter(rows))
    answer = made.search(requested, top=len(rows), global_descriptors="alone")
    likeness = {name: float(row @ rows[requested]) for name, row in rows.items()}
    expected = sorted((name for name in rows if likeness[name] > 0), key=lambda name: -likeness[name])
    assert [one.name for one in answer][:10] == expected[:10] and not answer.found
    np.testing.assert_allclose([one.score for one in answer], [likeness[one.name] for one in answer], atol=2e-3)
    # An upload, and a box in it, is described too.
    photo = _pixels(made.photo(requested).path)
    assert made.search(photo, global_descriptors="alone").results[0].name == requested
    part = made.search(photo, (20, 20, 200, 150), global_descriptors="alone").results[0]
    row = Colours().describe(photo[20:151, 20:201])
    np.testing.assert_allclose(part.score, rows[part.name] @ row / np.linalg.norm(row), atol=0.02)


def test_a_shortlist_is_searched_alone_and_likeness_raises_scores(made: library.Collection) -> None:
    made.add_global_descriptors(Colours(), workers=1)
    plain = {one.name: one for one in made.search("coffee_001.jpg", top=99)}
    fused = {one.name: one for one in made.search("coffee_001.jpg", top=99, global_descriptors="fused")}
    short = made.search("coffee_001.jpg", top=99, global_descriptors="shortlist")
    assert {one.name for one in short.found} == {one.name for one in plain.values() if one.found}
    assert {one.name: one.score for one in short} == {name: one.score for name, one in plain.items()}
    rows = _rows(made)
    likeness = {name: float(row @ rows["coffee_001.jpg"]) for name, row in rows.items()}
    mean, spread = np.mean(list(likeness.values())), np.std(list(likeness.values()))
    for name, one in plain.items():
        np.testing.assert_allclose(fused[name].score / one.score, np.exp(0.1 * (likeness[name] - mean) / spread), 2e-3)
    with pytest.raises(CairnError, match="alone verify nothing: leave out engine, expand"):
        made.search("coffee_001.jpg", global_descriptors="alone", expand="average")


def test_rows_follow_their_photos(made: library.Collection, tmp_path: Path) -> None:
    made.add_global_descriptors(Colours(), workers=1)
    before = len(made)
    image = cv2.imread(str(made.photo("coffee_001.jpg").path))
    (tmp_path / "new").mkdir()
    cv2.imwrite(str(tmp_path / "new" / "mirrored.png"), image[:, ::-1])
    made.add(tmp_path / "new", workers=1)
    assert made.info().global_descriptors is not None and made.info().global_descriptors["photos"] == before + 1
    answer = made.search("mirrored.png", global_descriptors="alone", top=2)
    assert answer.results[0].name == "mirrored.png"
    made.remove(["mirrored.png"])
    assert "mirrored.png" not in {one.name for one in made.search("coffee_001.jpg", global_descriptors="alone", top=99)}
    kept = read_global(made.folder)
    assert kept is not None and len(kept.numbers) == before + 1
    made.compact()
    kept = read_global(made.folder)
    assert kept is not None and len(kept.numbers) == before
    made.remove_global_descriptors()
    assert made.info().global_descriptors is None
    with pytest.raises(CairnError, match="has no global descriptors: add some with Collection"):
        made.search("coffee_001.jpg", global_descriptors="fused")


def test_photos_are_found_by_words(made: library.Collection, tmp_path: Path, cairn: Callable[..., Ran]) -> None:
    made.add_global_descriptors(Colours(), workers=1)
    colour = np.tile([1.0, -1, -1], 16) / 48**0.5
    likeness = {name: float(row @ colour) for name, row in _rows(made).items()}
    expected = sorted(likeness, key=lambda name: -likeness[name])
    found = made.photos_like("something red", top=5)
    assert [photo.name for photo, _ in found] == expected[:5]
    np.testing.assert_allclose([one for _, one in found], [likeness[name] for name in expected[:5]], atol=2e-3)
    made.hide([expected[0]])
    assert [photo.name for photo, _ in made.photos_like("red", top=1)] == expected[1:2]
    said = cairn("global", made.folder, "--find", "red", "--top", 1, "--json").json
    assert [one["name"] for one in said["results"]] == expected[1:2]
    np.savez(tmp_path / "one.npz", names=np.array(expected[:1]), vectors=np.ones((1, 3)))
    made.add_global_descriptors(tmp_path / "one.npz")
    with pytest.raises(CairnError, match="have no global descriptors that can also describe words"):
        made.photos_like("red")


def test_a_matrix_is_taken_from_a_file(made: library.Collection, tmp_path: Path, cairn: Callable[..., Ran]) -> None:
    rows = _rows(made)
    names = list(rows)
    np.savez(tmp_path / "some.npz", names=np.array([*names, "nobody.jpg"]), vectors=np.eye(len(names) + 1, 48) + 0.1)
    ran = cairn("global", made.folder, tmp_path / "some.npz", "--json").json
    assert (ran["described"], ran["unknown"]) == (len(names), ["nobody.jpg"])
    np.save(tmp_path / "all.npy", np.array(list(rows.values()), np.float32))
    assert "write them into" in cairn("global", made.folder, tmp_path / "all.npy").refused()
    (tmp_path / "all.txt").write_text("\n".join(Path(name).stem for name in names))  # without extension
    assert "48 dimensions" in cairn("global", made.folder, tmp_path / "all.npy").out + cairn("info", made.folder).out
    said = cairn("query", made.folder, names[0], "--global-descriptors", "alone", "--json").json
    assert said["results"][0]["name"] == names[0] and said["global_descriptors"] == "alone"
    told = cairn("query", made.folder, names[0], "--box", 1, 1, 90, 90, "--global-descriptors", "fused").refused()
    assert "come from a file, which has none of a part of" in told and "--global-descriptors" in told
    with pytest.raises(CairnError, match="which has none of image"):
        made.search(np.zeros((64, 64, 3), np.uint8), global_descriptors="shortlist")
    assert made.search(names[0]).results  # features are searched as ever


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"names": np.array(["a"]), "vectors": np.ones((2, 3))}, "2 rows and 1 names"),
        ({"names": np.array([1, 2]), "vectors": np.ones((2, 3))}, "not a list of texts"),
        ({"names": np.array(["a"]), "vectors": np.ones(3)}, "no matrix of floating-point numbers"),
        ({"names": np.array(["a"]), "vectors": np.full((1, 3), np.nan)}, "no numbers"),
        ({"names": np.array(["a"]), "vectors": np.ones((1, 3))}, "None of the 1 names"),
        ({"vectors": np.ones((1, 3))}, "is damaged or no file of global descriptors"),
    ],
)
def test_a_matrix_that_cannot_be_used_is_refused_in_a_sentence(
    made: library.Collection, tmp_path: Path, arrays: dict[str, np.ndarray], told: str
) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(CairnError, match=told):
        made.add_global_descriptors(tmp_path / "bad.npz")
    assert made.info().global_descriptors is None


def test_another_model_or_none_is_told(made: library.Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    made.add_global_descriptors(Colours(), workers=1)
    photo = _pixels(made.photo("coffee_001.jpg").path)
    forget(monkeypatch)
    with pytest.raises(ExtensionMissing, match=r"toy_extensions:colours' is neither installed nor registered"):
        made.search(photo, global_descriptors="fused")
    assert made.search("coffee_001.jpg", global_descriptors="fused").found  # what is kept will do
    library.register("global_descriptor", Colours("colours-2"))
    with pytest.raises(CairnError, match="is another now than that of the collection, by another model or version"):
        made.search(photo, global_descriptors="fused")
    assert made.add_global_descriptors(Colours("colours-2"), workers=1).described == len(made)


def test_damage_is_found_and_repaired_and_a_backup_has_them(made: library.Collection, tmp_path: Path) -> None:
    made.add_global_descriptors(Colours(), workers=1)
    assert made.check().ok
    assert made.backup(tmp_path / "copy").images and (tmp_path / "copy" / "global.npz").is_file()
    path = made.folder / "global.npz"
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 4
    path.write_bytes(contents)
    assert [one.file for one in made.check().damaged] == ["global.npz"]
    with pytest.raises(CairnError, match="is damaged or no file of global descriptors"):
        made.search("coffee_001.jpg", global_descriptors="alone")
    assert made.info().global_descriptors == {
        **{"name": "", "extension": None, "dim": 0, "photos": 0, "bytes": 0},
        "damaged": True,
    }
    made.close()
    assert library.repair(tmp_path / "c.cairn").ok and not path.exists()


def test_likeness_is_the_cosine_and_photos_without_a_row_come_last() -> None:
    kept = GlobalRows(np.zeros(0, np.uint32), np.zeros((0, 3), np.float16), "toy")
    assert kept.likeness(np.ones(3, np.float32), np.array([1, 2])).tolist() == [-1, -1]
    kept = kept.merged([7, 3], np.array([[0, 2.0, 0], [1e30, 0, 1e30]]))
    np.testing.assert_allclose(
        kept.likeness(np.array([1, 0, 0], np.float32), np.array([3, 5, 7])), [0.5**0.5, -1, 0], atol=1e-3
    )
    assert kept.row_of(5) is None and kept.kept(np.array([7])).numbers.tolist() == [7]


@pytest.mark.slow
def test_requests_have_the_option_too_and_find_photos_by_words(
    made: library.Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list(_rows(made))
    np.savez(tmp_path / "rows.npz", names=np.array(names), vectors=np.eye(len(names), 48) + 0.1)
    made.add_global_descriptors(tmp_path / "rows.npz")
    how = {"global_descriptors": "alone"}
    place = {"colours": "tests.support.toy_extensions:Colours"}
    install(monkeypatch, tmp_path / "site", {"cairn.global_descriptors": place})
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}:{ROOT}")  # of the server's processes
    with serving(made.folder, tmp_path / "cache") as address, client_of(address) as client:
        answer = client.get("/api/search", params={"q": made.photo(names[0]).number, **how}).json()
        assert answer["results"][0]["name"] == names[0] and answer["global_descriptors"] == "alone"
        assert len(answer["results"]) == min(20, len(names)) and not any(one["found"] for one in answer["results"])
        photo = Path(made.photo(names[0]).path)
        request = json.dumps({"queries": [{"upload": 0}], **how})
        sent = [("photos", ("a.jpg", photo.read_bytes() + b" ")), ("request", (None, request))]
        refused = client.post("/api/search", files=sent)  # type: ignore[arg-type]
        assert 400 <= refused.status_code < 500 and "come from a file, which has none of" in refused.text
        assert client.get("/api/search", params={"q": 1, "global_descriptors": "some"}).status_code == 422
        refused = client.get("/api/like", params={"like": "a red door"})
        assert (
            refused.status_code == 400
            and "no global descriptors that can also describe words" in refused.json()["detail"]
        )
        assert str(made.folder) not in refused.text
        made.add_global_descriptors("colours", workers=1)
        requested = {"like": "a red door", "name": names[0][:3], "top": 3}
        found = client.get("/api/like", params=requested).json()
        expected = made.photos_like("a red door", top=3, where={"name": names[0][:3]})
        assert found["like"] == "a red door" and len(expected) == 3
        assert [(one["name"], one["likeness"]) for one in found["photos"]] == [
            (one.name, said) for one, said in expected
        ]
        for wrong in ({}, {"like": ""}, {"like": "a", "top": 0}, {"like": "a", "album": "x"}):
            assert client.get("/api/like", params=wrong).status_code == 422


@pytest.mark.slow
@pytest.mark.browser
def test_the_page_lets_choose_where_there_are_some(made: library.Collection, tmp_path: Path, chromium: Any) -> None:
    names = [photo.name for photo in made]
    np.savez(tmp_path / "rows.npz", names=np.array(names), vectors=np.eye(len(names), 48) + 0.1)
    with serving(made.folder, tmp_path / "cache") as address, visiting(chromium, address) as visit:
        page = visit.open(f"/search?q={made.photo(names[0]).number}")
        page.get_by_text("Options and filters").click()
        page.wait_for_load_state("networkidle")
        assert not page.get_by_label("Likeness of whole photos").is_visible()
        made.add_global_descriptors(tmp_path / "rows.npz")
        page.reload()
        page.get_by_text("Options and filters").click()
        page.get_by_label("Likeness of whole photos").select_option("alone")
        page.wait_for_url("**global_descriptors=alone*")
        assert wait_for_results(page)[0] == names[0]
        assert "The positions of things in the photos were not checked." in page.locator("#facts").text_content()


@pytest.mark.slow
def test_a_benchmark_measures_them(made: library.Collection, indexed: Indexed) -> None:
    made.add_global_descriptors(Colours(), workers=1)
    mean = {}
    for how in ("none", "shortlist", "alone"):
        done = library.evaluate_retrieval(
            indexed.photos, indexed.gt, collection=made.folder, global_descriptors=how, turns=1, workers=1
        )
        mean[how] = done.mean_ap
    assert mean["none"] == mean["shortlist"] > mean["alone"] > 0
