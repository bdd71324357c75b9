"""The page of all experiments: it is that of the experiments as they are."""

from scripts.documentation.reproduce_page import PAGE, duration, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m scripts.documentation.reproduce_page"


def test_durations() -> None:
    assert [duration(hours) for hours in (0.001, 0.5, 1.2, 47, 60)] == ["1 min", "30 min", "1 h", "47 h", "2 days"]
