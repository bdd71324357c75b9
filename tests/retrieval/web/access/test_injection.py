"""Names of photos that a spreadsheet would take for formulas."""

import pytest

from retrieval.web.routes.groups import no_formula


@pytest.mark.parametrize("name", ['=HYPERLINK("//x")', "+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1"])
def test_no_cell_of_a_table_is_a_formula(name: str) -> None:
    assert no_formula(name) == f"'{name}"


def test_other_names_stay_as_they_are() -> None:
    assert [no_formula(name) for name in ("", "cat.jpg", "a=b.jpg", "12")] == ["", "cat.jpg", "a=b.jpg", "12"]
