"""Collections that were made with extensions."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cairn as library
from eval.protocols.truth import read_truth
from index.errors import CairnError
from index.extensions import ExtensionMissing
from retrieval.collection.options import CollectionOptions, read_options
from retrieval.search.engines.tf_idf import TfIdf
from tests.conftest import Indexed, Ran
from tests.support import toy_detector
from tests.support.paths import ROOT
from tests.support.toy_extensions import PLACE, Lines, Means, forget, install, no_extensions  # noqa: F401

ASKED = "coffee_001"


@pytest.fixture
def some(indexed: Indexed) -> list[Path]:
    return [indexed.photos / f"{name}.jpg" for name in (ASKED, "coffee_002", "page_001")]


def test_a_collection_made_with_an_installed_descriptor_says_what_it_needs(
    some: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cairn: Callable[..., Ran]
) -> None:
    with monkeypatch.context() as patch:
        install(patch, tmp_path / "site", {"cairn.descriptors": {"means": PLACE}})
        made = tmp_path / "c.cairn"
        assert cairn("index", made, *some, "--descriptor", "means", "--words", 30, "--workers", 1, "--json").json
        kept = read_options(made / "collection.toml")
        assert (kept.descriptor, kept.extensions) == (PLACE, (f"{PLACE} 1.2",))
        assert cairn("query", made, some[0], "--json").json["results"][0]["name"] == f"{ASKED}.jpg"
        # Named again in either way it is the same.
        assert "do not count" not in cairn("index", made, *some, "--descriptor", "means").err
    forget(monkeypatch)
    for command in ("info", "check", "repair"):
        said = cairn(command, made).refused()
        assert f"made with the descriptor '{PLACE} 1.2', which is neither installed nor registered here" in said
    ran = cairn("info", made, "--json")
    assert ran.refused() and json.loads(ran.out)["kind"] == "ExtensionMissing"


def test_a_collection_never_has_anything_imported(indexed: Indexed, tmp_path: Path, some: list[Path]) -> None:
    """Even what is on the path of the process, and would be an extension if a package declared it."""
    made = tmp_path / "c.cairn"
    library.create(made, descriptor="sift", words=10).close()
    (tmp_path / "trap.py").write_text("from pathlib import Path\nPath('sprung').touch()\n")
    options = (made / "collection.toml").read_text(encoding="utf-8")
    for kind, before in (("descriptor", '"sift"'), ("detector", '"dog-affine"')):
        for place in ("os:system", "trap:anything"):
            changed = options.replace(f"{kind} = {before}", f'{kind} = "{place}"\n')
            assert changed != options
            (made / "collection.toml").write_text(changed, encoding="utf-8")
            requested = [sys.executable, "-c", f"import cairn; cairn.open({str(made)!r})"]
            environment = {"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": ""}
            if place == "trap:anything" and kind == "descriptor":  # a process that could import it
                ran = subprocess.run(
                    requested, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                assert f"the {kind} '{place}', which is neither installed" in ran.stderr
            with pytest.raises(ExtensionMissing, match=place):
                library.open(made)
    assert not (tmp_path / "sprung").exists() and "trap" not in sys.modules


def test_objects_are_taken_in_place_of_names(some: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Newest(TfIdf):
        expands = False

        def score_many(self, views):
            return np.tile(self.index.image_numbers.astype(np.float32) + 1, (len(views), 1))

    made = tmp_path / "c.cairn"
    with library.create(made, descriptor=Means(), detector=toy_detector.DETECTOR, words=30) as collection:
        collection.add(some, workers=1)
        numbers = [result.number for result in collection.search(some[0], engine=Newest).results]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 3
    kept = read_options(made / "collection.toml")
    assert kept.descriptor == "tests.support.toy_extensions:means"
    assert kept.features.regions.detector == "tests.support.toy_detector:laplacian"
    forget(monkeypatch)
    with pytest.raises(ExtensionMissing):
        library.open(made)
    library.register("descriptor", Means())
    library.register("detector", toy_detector.DETECTOR)
    with library.open(made) as collection:
        assert collection.search(some[0]).results[0].name == f"{ASKED}.jpg"
    with pytest.raises(CairnError, match="This Means does not keep the contract of a detector: it has no respond"):
        library.create(tmp_path / "d.cairn", detector=Means())


def test_a_benchmark_takes_objects_and_protocols(
    indexed: Indexed, some: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = tmp_path / "truth.lines"
    truth.write_text(f"cup {ASKED} {ASKED} coffee_002\n", encoding="utf-8")
    install(monkeypatch, tmp_path / "site", {"cairn.protocols": {"lines": "tests.support.toy_extensions:Lines"}})
    assert read_truth(truth).queries[0].labels[""].positives == {ASKED, "coffee_002"}
    photos = tmp_path / "photos"
    photos.mkdir()
    for path in some:
        (photos / path.name).write_bytes(path.read_bytes())
    found = library.evaluate_retrieval(photos, truth, descriptor=Means(), words=30, workers=1)
    assert found.ap == {"cup": 1.0}
    assert Lines().read(truth) == {"cup": {"photo": ASKED, "good": [ASKED, "coffee_002"]}}


def test_what_a_file_says_of_extensions_is_checked(tmp_path: Path) -> None:
    library.create(tmp_path / "c.cairn").close()
    path = tmp_path / "c.cairn" / "collection.toml"
    text = path.read_text(encoding="utf-8")
    assert "extensions" not in text  # earlier versions can read it
    path.write_text(text.replace("format = 2", "format = 2\nextensions = [1]"), encoding="utf-8")
    with pytest.raises(CairnError, match="'extensions' is not of the right type"):
        read_options(path)
    assert CollectionOptions().with_extensions() == CollectionOptions()


def test_the_parts_take_objects_too(indexed: Indexed) -> None:
    image = library.read_image(indexed.photos / f"{ASKED}.jpg", 256)
    regions = library.detect(image, detector=toy_detector.DETECTOR, max_features=50)
    rows = library.describe(image, regions, Means(), detector=toy_detector.DETECTOR)
    assert 20 < len(regions) <= 50 and rows.shape == (len(regions), 16)
