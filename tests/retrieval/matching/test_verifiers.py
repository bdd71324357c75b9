"""Verifiers, Cairn's own and others: two photos' features in, inliers and a map out."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cairn as library
from index.errors import CairnError
from retrieval.library.testing import _made_up, check_verifier
from retrieval.matching.verification import VerificationOptions
from retrieval.matching.verifiers import Agreement, VerifierInput, WordVerifier, find_verifier, verification_of
from retrieval.search.options import SearchOptions
from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT
from tests.support.toy_extensions import Nearest, install, no_extensions  # noqa: F401

ASKED = "coffee_001"


@pytest.mark.parametrize("verifier", [WordVerifier(), Nearest()])
def test_the_contract_is_kept(verifier) -> None:
    check_verifier(verifier)


def test_the_example_of_a_matching_network_takes_what_light_glue_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its export has them: places over half the longer side from the middle, rows, and pairs with scores."""

    class Session:
        def __init__(self, model: str) -> None:
            assert model == "lightglue.onnx"

        def run(self, outputs: list[str], given: dict[str, np.ndarray]) -> list[np.ndarray]:
            assert outputs == ["matches0", "mscores0"] and given.keys() == {"kpts0", "kpts1", "desc0", "desc1"}
            for places, rows in ((given["kpts0"], given["desc0"]), (given["kpts1"], given["desc1"])):
                assert places.dtype == rows.dtype == np.float32 and places.shape == (1, rows.shape[1], 2)
                assert places.min() < -0.7 and 0.7 < places.max() <= 1 and abs(places.mean()) < 0.2
            alike = given["desc0"][0] @ given["desc1"][0].T
            first = np.flatnonzero(alike.argmax(axis=0)[alike.argmax(axis=1)] == np.arange(len(alike)))
            return [np.stack([first, alike.argmax(axis=1)[first]], axis=1), alike.max(axis=1)[first]]

    page = (ROOT / "docs" / "how-to" / "extensions.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(class LightGlue:.*?)```", page, re.DOTALL)
    scope = {"np": np, "cairn": library}
    exec(example[1], scope)
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(InferenceSession=Session))
    check_verifier(scope["LightGlue"]("lightglue.onnx"))


def test_a_verifier_that_breaks_the_contract_does_not_pass() -> None:
    def in_sides(query, photo):
        found = WordVerifier().verify(query, photo)
        return found and replace(found, transform=found.transform / 640)

    for verify, said in (
        (lambda query, photo: None, "does not verify two photos of the same"),
        (in_sides, "not in pixels"),
        (lambda query, photo: Agreement(np.array([[0, 0], [0, 1]]), np.eye(2, 3)), "in another match"),
        (lambda query, photo: Agreement(np.array([[0, 400]]), np.eye(2, 3)), "a feature that there is not"),
        (lambda query, photo: Agreement(np.array([[0.5, 0.5]]), np.eye(2, 3)), "are .M, 2. numbers of features"),
        (lambda query, photo: Agreement(np.array([[0, 0]]), np.zeros((2, 3))), "mirrors and flattens nothing"),
        (lambda query, photo: 1 / 0, "failed: 'ZeroDivisionError: division by zero'"),
    ):
        with pytest.raises(AssertionError, match=said):
            check_verifier(SimpleNamespace(verify=verify))


def test_agreement_without_odds_is_weighed_by_its_places() -> None:
    query, same, _ = _made_up(VerifierInput)
    pairs = np.column_stack([np.arange(200)] * 2)
    options = VerificationOptions()

    def weighed(number: int) -> float:
        reported = SimpleNamespace(
            verify=lambda *_: Agreement(pairs[:number], np.array([[0.8, -0.1, 64], [0.1, 0.8, 12]]))
        )
        return verification_of(reported, query, same, options).log_odds

    assert weighed(4) < options.evidence.sure < weighed(60) <= weighed(200)


def test_the_command_and_python_take_another_verifier(
    indexed: Indexed, tmp_path: Path, cairn: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path / "site", {"cairn.verifiers": {"nearest": "tests.support.toy_extensions:Nearest"}})
    photos = [indexed.photos / f"{name}.jpg" for name in ("coffee_002", "coffee_003", "page_001")]
    requested, box, made = indexed.photos / f"{ASKED}.jpg", indexed.boxes[ASKED], tmp_path / "c.cairn"
    x0, y0, x1, y1 = box
    with library.create(made, keep_descriptors=True, words=200) as collection:
        collection.add(photos, workers=1)
        for verifier in (Nearest(), "nearest", "words"):
            answer = collection.search(requested, box, turns=1, verifier=verifier)
            found = {result.name.removesuffix(".jpg"): result for result in answer.results if result.inliers}
            assert found.keys() == {"coffee_002", "coffee_003"}
            for name, result in found.items():
                # The middle of what was asked for lies where it is.
                middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2, 1])
                ours, truth = result.homography @ middle, indexed.homography(ASKED, name) @ middle
                np.testing.assert_allclose(ours[:2] / ours[2], truth[:2] / truth[2], atol=12)
    reported = cairn("query", made, requested, "--verifier", "nearest", "--turns", 1, "--json").json
    assert reported["results"][0]["inliers"] > 10
    assert (
        "no verifier 'magic': choose own or words" in cairn("query", made, requested, "--verifier", "magic").refused()
    )
    said = cairn("query", made, requested, "--verifier", "nearest", "--engine", "tf-idf").refused()
    assert said == "The engine tf-idf does not verify photos: leave out --verifier, or choose another engine."
    with library.create(tmp_path / "d.cairn", words=20) as collection:
        collection.add(photos[:1], workers=1)
    said = cairn("query", tmp_path / "d.cairn", requested, "--verifier", "nearest").refused()
    assert "needs descriptors, and" in said and "index with --keep-descriptors" in said


def test_no_other_module_is_a_verifier() -> None:
    for look_up in (find_verifier, lambda name: SearchOptions(verifier=name)):
        with pytest.raises(CairnError, match="os:system' is neither installed nor registered here"):
            look_up("os:system")
