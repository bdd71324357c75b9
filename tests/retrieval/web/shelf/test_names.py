"""Titles of any script become names that are safe as folders and in addresses."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.web.shelf.names import LONGEST_NAME, LONGEST_TITLE, clean_title, folder_name, title_key


@given(st.text(max_size=200), st.lists(st.text(max_size=5)))
def test_any_title_gives_a_safe_name_that_is_not_taken(text: str, taken: list[str]) -> None:
    taken += ["Collection", "collection-2"]
    name = folder_name(text, taken)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and len(name) <= LONGEST_NAME + 8
    assert name not in {one.casefold() for one in taken} | {"con", "nul", "com1"}
    again = folder_name(text, [*taken, name.upper()])
    assert again != name and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", again)


def test_names_read_like_their_titles() -> None:
    titles = {
        "Straße & Zürich": "strasse-zurich",
        "../../etc/passwd": "etc-passwd",
        "CON": "con-2",
        "Fotografie Łódź 1923": "fotografie-lodz-1923",
        "Москва": "collection",
        "x" * 300: "x" * LONGEST_NAME,
    }
    assert {title: folder_name(title) for title in titles} == titles


def test_titles_are_one_line_of_text_without_tricks() -> None:
    assert clean_title("  Summer\u202e\n\t of  e\u0301te\u0301 \0".rstrip("\0")) == "Summer of été"
    assert clean_title("<b>東京</b> 📷") == "<b>東京</b> 📷"
    persian, family = "می\u200cخواهم", "👨\u200d👩\u200d👧"  # whose spelling has joiners
    assert (clean_title(persian), clean_title(family)) == (persian, family)
    assert title_key("Sum\u200cmer") == title_key("summer")  # and which tell no two titles apart
    assert title_key("ÉTÉ") == title_key(clean_title("e\u0301te\u0301")) != title_key("ete")
    for wrong in ("", " \u200b\u202e\t", "\u0301", "x" * (LONGEST_TITLE + 1), "a\0b", "\udcff"):
        with pytest.raises(CairnError):
            clean_title(wrong)
