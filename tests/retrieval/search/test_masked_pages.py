from __future__ import annotations

import pytest

from tests.support.masked_pages import print_set, search_set
from tests.support.printed_pages import typefaces


@pytest.mark.slow
@pytest.mark.skipif(len(typefaces()) < 5, reason="the fonts of DejaVu and Liberation are not installed")
def test_type_finds_no_page_and_ornaments_are_found_as_before(tmp_path):
    dealt = print_set(tmp_path / "pages")
    before = search_set(tmp_path / "pages", dealt, None)
    after = search_set(tmp_path / "pages", dealt, "text")
    assert before.wrong > 500  # else the pages prove nothing
    assert after.wrong == 0
    assert after.masked == len(dealt)
    assert after.found == after.wanted >= before.found
