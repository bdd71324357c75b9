"""The page of rankings: contents and order, and escaping of names."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eval.rankings.files import Rankings
from eval.rankings.ground_truth import GroundTruth
from eval.rankings.page import SHOWN, check_page, write_page
from eval.rankings.photos import PhotoFiles
from eval.rankings.scoring import RankingReport, score_rankings
from index.errors import CairnError
from learning.labels.ground_truth import GroundTruthQuery

NASTY = "<script>alert(1)</script>\"'&"


class Page(HTMLParser):
    """Tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> PhotoFiles:
    folder = tmp_path_factory.mktemp("photos")
    for number in range(30):
        Image.fromarray(np.full((60, 90, 3), 8 * number, np.uint8)).save(folder / f"photo{number}.jpg")
    (folder / "broken.jpg").write_bytes(b"no photo")
    return PhotoFiles([folder])


def report() -> RankingReport:
    def query(name: str, stem: str, positives: set[str], junk: set[str]) -> GroundTruthQuery:
        return GroundTruthQuery(name, stem, (10, 5, 70, 50), frozenset(positives), frozenset(), frozenset(junk))

    names = [f"photo{number}" for number in range(30)]
    requested = [
        query("good", "photo0", {"photo0", "photo1"}, {"photo2"}),
        query(f"bad{NASTY}", "broken", {"photo18", "photo29", f"gone{NASTY}"}, {"photo3", f"junk{NASTY}"}),
    ]
    ranked = {"good": names, f"bad{NASTY}": [f"junk{NASTY}", "broken", *names]}
    return score_rankings(Rankings(ranked, f"file{NASTY}"), GroundTruth({"oxford": requested}))


def test_the_page_shows_the_worst_first_with_right_wrong_and_junk(tmp_path: Path, photos: PhotoFiles) -> None:
    path = tmp_path / "page.html"
    seen: list[tuple[str, int, int]] = []
    write_page(
        path, report(), photos, title=NASTY, facts={NASTY: NASTY}, progress=lambda *reported: seen.append(reported)
    )
    text = path.read_text(encoding="utf-8")
    assert seen == [("page", 1, 2), ("page", 2, 2)]
    bad, good = text.split("<article>")[1:]
    assert "AP 1.0000" in good and "bad" in bad
    kinds = [re.findall(r'<figure class="(\w+)"', part) for part in (bad, good)]
    # junk, an unreadable wrong photo, and photos 0 to 17, with 3 as junk; then the later positives.
    assert kinds[0] == ["junk", "wrong", *["wrong"] * 3, "junk", *["wrong"] * 14, "right", "right", "right"]
    assert kinds[1] == ["right", "right", "junk", *["wrong"] * (SHOWN - 3)]
    assert "<b>✓ 30</b> photo29" in bad and bad.count("<b>✓ not ranked</b>") == 1 and "<b>✗ 1</b> broken" in bad
    # Photo 18, of rank 19, comes after two junk photos: it is listed among the later ones, where it is shown.
    assert "2 of 3 positives in a ranking of 32, 0 among the first 20; 2 junk" in bad
    assert '<rect class="box" x="10.0" y="5.0" width="60.0" height="45.0"' in good
    assert text.count("url(data:image/jpeg;base64,") == 21  # each photo once: 0 to 19, and 29


def test_nothing_is_loaded_and_no_name_becomes_markup(tmp_path: Path, photos: PhotoFiles) -> None:
    path = tmp_path / "page.html"
    write_page(path, report(), photos, title=NASTY, facts={NASTY: NASTY})
    page = Page(path.read_text(encoding="utf-8"))
    assert "script" not in {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            value = attributes.get(name)
            assert value is None or value.startswith("data:image/jpeg;base64,"), (tag, value)
    assert not re.search(r"https?:|url\((?!data:)", path.read_text(encoding="utf-8"))


def test_a_page_that_cannot_be_written_is_refused_early(tmp_path: Path) -> None:
    for path in (tmp_path / "page.pdf", tmp_path / "no" / "page.html"):
        with pytest.raises(CairnError):
            check_page(path)
