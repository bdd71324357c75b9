"""Extensions are declared by packages or registered by programs; nothing else is imported."""

import sys
from pathlib import Path

import pytest

from index.errors import CairnError
from index.extensions import ExtensionMissing, find, place_of, refuse_missing, register
from index.parallel import run
from retrieval.descriptors.registry import find_descriptor
from retrieval.search.engines.registry import find_engine
from tests.support.toy_extensions import PLACE, Means, Nearest, install, no_extensions  # noqa: F401


def test_what_a_package_declares_is_found_by_name_and_by_place(monkeypatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, {"cairn.descriptors": {"means": PLACE}})
    for name in ("means", PLACE):
        found = find("descriptor", name)
        assert (found.place, found.version) == (PLACE, "1.2")
        assert isinstance(find_descriptor(name), Means)
    assert place_of("descriptor", "means") == PLACE and place_of("descriptor", "sift") == "sift"
    assert find("detector", "means") is None
    with pytest.raises(CairnError, match=r"'magic'; choose one of .*rootsift.*, means, a file"):
        find_descriptor("magic")


def test_no_other_name_is_imported(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    install(monkeypatch, tmp_path, {"cairn.descriptors": {"means": PLACE}})
    for name in ("os:system", "trap:anything", "trap:Means", "tests.support.toy_extensions:Lines"):
        with pytest.raises(ExtensionMissing, match="neither installed nor registered"):
            find_descriptor(name)
        with pytest.raises(ExtensionMissing):
            find_engine(name)
    assert "trap" not in sys.modules


def test_two_packages_of_one_name_are_told_apart_by_their_places(monkeypatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, {"cairn.descriptors": {"means": PLACE}})
    place = register("descriptor", type("Other", (Means,), {})("other"))
    assert place == "tests.index.test_extensions:means"
    with pytest.raises(CairnError, match=f"name one of {place}, {PLACE}"):
        find("descriptor", "means")
    assert find("descriptor", place).version == ""


def test_an_object_of_an_installed_package_is_that_extension(monkeypatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, {"cairn.descriptors": {"means": PLACE}})
    assert register("descriptor", Means()) == PLACE
    assert register("descriptor", Means("larger")) == "tests.support.toy_extensions:means"


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("descriptor", 7, "This int does not keep the contract of a descriptor: it has no name."),
        ("engine", Means(), "An engine is a name, or a class"),
        ("colour", Means(), "no kind of extension 'colour'; choose one of descriptor,"),
    ],
)
def test_what_keeps_no_contract_is_refused(kind: str, given: object, said: str) -> None:
    with pytest.raises(CairnError, match=said):
        register(kind, given)


def test_a_package_that_fails_is_named(monkeypatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, {"cairn.descriptors": {"broken": "tests.support.no_such_module:It"}})
    with pytest.raises(CairnError, match=r"broken \(tests.support.no_such_module:It\) cannot be loaded \(Module"):
        find_descriptor("broken")


def _name_of(place: str) -> str:
    return find_descriptor(place).name


def test_worker_processes_have_what_is_registered() -> None:
    from functools import partial

    place = register("descriptor", Means())
    assert list(run((partial(_name_of, place) for _ in range(2)), 2, batch=1)) == ["means", "means"]


def test_names_that_are_no_places_are_left_to_others() -> None:
    for name in ("sift", "T3h-S4-25", "a:b:c", "C:\\x.npz", ":x", "x:", "a b:c"):
        refuse_missing("descriptor", name)


def test_an_object_made_otherwise_does_not_hide_the_installed_one(monkeypatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, {"cairn.verifiers": {"nearest": "tests.support.toy_extensions:Nearest"}})
    other = Nearest()
    assert find("verifier", register("verifier", other)).load() is other
    assert find("verifier", "nearest").load() is not other
