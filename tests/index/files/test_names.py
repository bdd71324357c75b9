"""Plain names, and links that lead out of a folder."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.files.names import find_link_out, is_plain_name, is_plain_path


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "...", " ", "/", "a/b", "/etc", "..\\x", "C:", "C:x", "a\0b", "a\nb", "x" * 256, "é" * 128),
        *("\ud800", None, 1, b"a", ["a"]),
    ],
)
def test_a_path_or_anything_else_is_no_plain_name(name: object) -> None:
    assert not is_plain_name(name)
    assert not is_plain_path(name) or name == "a/b"


@pytest.mark.parametrize("name", ["000001", "vocabulary-000002", ".hidden", "a..b", "é" * 127, "two words"])
def test_names_of_files_are_plain(name: str) -> None:
    assert is_plain_name(name) and is_plain_path(f"{name}/{name}")


@given(st.text(st.sampled_from("./\\ab:\0\n~ ")))
def test_a_plain_path_stays_below_its_folder(name: str) -> None:
    if is_plain_path(name):
        parts = Path("/top", name).parts
        assert parts[:2] == ("/", "top") and ".." not in parts and len(parts) == 2 + len(name.split("/"))


def test_a_link_that_leads_out_is_found_wherever_it_lies(tmp_path: Path) -> None:
    folder, outside = tmp_path / "it", tmp_path / "outside"
    (folder / "a" / "b").mkdir(parents=True)
    outside.mkdir()
    (folder / "a" / "inside").symlink_to(folder / "a" / "b")
    (folder / "circle").symlink_to(folder / "circle")
    (tmp_path / "link").symlink_to(folder)
    assert find_link_out(folder) is None and find_link_out(tmp_path / "link") is None
    for place in (folder / "x", folder / "a" / "x", folder / "a" / "b" / "x"):
        for target in (outside, "../../../outside", outside / "missing"):
            place.symlink_to(target)
            assert find_link_out(folder) == place
            place.unlink()
    (folder / "a" / "b" / "x").symlink_to(outside)
    assert find_link_out(folder, {"a"}) is None
    (folder / "a" / "x").symlink_to(outside)
    assert find_link_out(folder, {"a"}) == folder / "a" / "x"
