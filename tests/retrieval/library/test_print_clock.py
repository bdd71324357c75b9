"""The print clock of photos in one frame: decisions are followed, kept and taken back."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cairn as cairn_library
from retrieval.catalogue.metadata_store import import_values, store_metadata
from retrieval.catalogue.settings import keep_setting
from retrieval.impressions.frames import AlignedImpression, Frame
from retrieval.library.impressions import AlignedPhotos, Impression
from retrieval.library.print_clock import (
    ClockDecisions,
    PhotoDate,
    dates_of,
    decisions_of,
    keep_decisions,
    kept_decisions,
    named_in,
    read_clock,
)
from retrieval.metadata.fields import Metadata
from tests.conftest import Indexed, Ran
from tests.retrieval.impressions.test_clock import BREAKS, EVERYWHERE, SIDE, _state

DATES = {0: PhotoDate("1500"), 3: PhotoDate("1550-07")}
NAMES = {0: "old.png", 2: "middle.png", 3: "late.png"}


@pytest.fixture(scope="module")
def aligned() -> AlignedPhotos:
    """Three states, the latest first, at half the pixels of the reference."""
    frame = Frame((0.0, 0.0, 2.0 * SIDE, 2.0 * SIDE), (SIDE, SIDE))
    photos, states = [], []
    for number, broken in ((3, 6), (0, 0), (2, 3)):
        ink = _state(broken)
        pixels = np.zeros((*ink.shape, 3), np.uint8)
        photos.append(Impression(NAMES[number], "", number, None, np.eye(3), 0.0, pixels))
        states.append(AlignedImpression(pixels, ink, EVERYWHERE, np.eye(3), 0.0))
    return AlignedPhotos(frame, photos, states, [{"name": "cat.jpg", "reason": "it does not match late.png"}])


def test_order_and_years(aligned: AlignedPhotos, tmp_path: Path) -> None:
    found = read_clock(aligned, ClockDecisions(), DATES)
    assert [(one.name, one.breaks, one.place, one.year) for one in found.photos] == [
        ("old.png", 0, 1, 1500),
        ("middle.png", 3, 2, None),
        ("late.png", 6, 3, 1550.5),
    ]
    middle = found.photos[1]
    assert middle.read == pytest.approx(1525, abs=4) and middle.years is not None
    assert middle.years[0] < 1520 and middle.years[1] > 1530 and middle.places == (1, 3)
    written = found.save(tmp_path / "out")
    rows = list(csv.DictReader(written[-1].read_text("utf-8-sig").splitlines()))
    assert [row["photo"] for row in rows] == ["old.png", "middle.png", "late.png"]
    assert float(rows[0]["before late.png"]) == pytest.approx(found.earlier[0, 2], abs=1e-4)
    reported = json.loads(written[-2].read_text())
    assert [one["broken"] for one in reported["breaks"]].count([1, 2]) == 3 and len(reported["breaks"]) == len(BREAKS)
    assert len(written) == 5 and (found.picture(2) != found.picture(0)).any()


def test_decisions_are_followed_and_taken_back(aligned: AlignedPhotos) -> None:
    x, y = BREAKS[3]
    said = ClockDecisions(undated=["old.png"], regions=[(2 * x - 20, 2 * y - 20, 2 * x + 50, 2 * y + 20)])
    meant = named_in(aligned, said)
    assert meant.undated == (0,) and decisions_of(json.loads(json.dumps(vars(meant)))) == meant
    found = read_clock(aligned, meant, DATES)
    assert [one.breaks for one in found.photos] == [0, 3, 5] and found.photos[1].read is None
    assert [(one.year, one.counts) for one in found.photos] == [(1500, False), (None, False), (1550.5, True)]
    over = read_clock(aligned, ClockDecisions(before=[(3, 0)]), DATES)
    names = [one.name for one in over.photos]
    assert names.index("late.png") < names.index("old.png")
    without = read_clock(aligned, ClockDecisions(leave_out=[2]), DATES)
    assert len(without.photos) == 2 and without.left_out[-1] == {
        "name": "middle.png",
        "reason": "it was left out by hand",
    }
    with pytest.raises(cairn_library.CairnError, match="at least two impressions"):
        read_clock(aligned, ClockDecisions(leave_out=[0, 2]), DATES)
    with pytest.raises(cairn_library.CairnError, match=r"nobody\.png is not among"):
        named_in(aligned, ClockDecisions(leave_out=["nobody.png"]))


def test_dates_of_files_count_only_where_somebody_says_so(aligned: AlignedPhotos) -> None:
    scanned = {number: PhotoDate(date, from_file=number == 3) for number, (date, _) in DATES.items()}
    found = read_clock(aligned, ClockDecisions(), scanned)
    reported = [(one.year, one.counts, one.from_file, one.read) for one in found.photos]
    assert reported == [(1500, True, False, None), (None, False, False, None), (1550.5, False, True, None)]
    assert [tuple(row[6:8]) for row in found.rows()] == [
        ("year", "counts"),
        ("1500.0", "yes"),
        ("", ""),
        ("1550.5", "no"),
    ]
    meant = named_in(aligned, ClockDecisions(dated=["late.png"]))
    assert meant.dated == (3,) and decisions_of(json.loads(json.dumps(vars(meant)))) == meant
    both = read_clock(aligned, meant, scanned), read_clock(aligned, ClockDecisions(), DATES)
    assert [one.read for one in both[0].photos] == [one.read for one in both[1].photos]


@pytest.mark.parametrize(
    "wrong",
    (
        {"clock": "ink"},
        {"regions": [(1, 2, 3)]},
        {"regions": [(9, 0, 3, float("nan"))]},
        {"before": ["ab"]},
        {"leave_out": range(501)},
    ),
)
def test_wrong_decisions_are_a_sentence(wrong: dict[str, object]) -> None:
    with pytest.raises(cairn_library.CairnError):
        ClockDecisions(**wrong)  # type: ignore[arg-type]


def test_decisions_are_kept_with_the_reference(indexed: Indexed, cairn: Callable[..., Ran], tmp_path: Path) -> None:
    folder = tmp_path / "c.cairn"
    shutil.copytree(indexed.folder, folder)
    photos = ["page_001.jpg", "page_003.jpg"]
    requested = ("impressions", folder, *photos, "--clock", "breaks")
    kept = cairn(*requested, "--leave-region", "0,0,40,40", "--order", photos[1], "--order", photos[0], "--keep")
    assert kept.code == 0 and kept.out.index("1. page_003.jpg") < kept.out.index("2. page_001.jpg")
    with cairn_library.open(folder) as collection:
        one, other = (collection.photo(name).number for name in photos)
        key = f"cairn.print_clock.{one}"
        catalogue = collection.opened.catalogue
        decisions = ClockDecisions(regions=((0, 0, 40, 40),), before=((other, one),))
        assert catalogue.read(kept_decisions, key) == decisions and collection.check().ok
        for text in ('{"clock": "ink"}', "[", "[1]", '{"before": 1}'):  # whoever wrote it
            catalogue.write(keep_setting, key, text)
            assert catalogue.read(kept_decisions, key) == ClockDecisions()
        catalogue.write(keep_decisions, key, ClockDecisions())
        assert catalogue.setting(key) is None
        catalogue.write(store_metadata, [(number, Metadata(taken="2019-05-01")) for number in (one, other)])
        catalogue.write(import_values, {other: {"taken": ["1497"]}})
        found: Any = SimpleNamespace(photos=[SimpleNamespace(number=number) for number in (one, other, None)])
        assert dates_of(collection.opened, found) == {one: PhotoDate("2019-05-01", True), other: PhotoDate("1497")}
    assert "four numbers" in cairn(*requested, "--leave-region", "a,b").refused()
