"""What collections need: the table of the documentation is what the script prints, and its figures hang together."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from scripts import needs
from scripts.needs import Workload
from tests.support.paths import ROOT

LOADS = [Workload(photos, cores) for photos, cores in zip(needs.SIZES, needs.CORES, strict=True)]


def test_the_documentation_has_the_table() -> None:
    text = (ROOT / "docs/how-to/many-machines.md").read_text(encoding="utf-8")
    (written,) = re.findall(r"<!-- needs -->\n(.*)\n<!-- /needs -->", text, re.DOTALL)
    assert written == needs.table(LOADS), "docs/how-to/many-machines.md is out of date: run python -m scripts.needs"


def test_ten_times_the_photos_need_ten_times_what_goes_with_photos() -> None:
    for one, ten in pairwise(LOADS):
        for need in (needs.segment_bytes, needs.catalogue_bytes, needs.photo_traffic):
            assert need(ten) == pytest.approx(10 * need(one))
        assert needs.listing_hours(replace(ten, cores=one.cores)) <= 10 * needs.listing_hours(one) * (1 + 1e-9)
        assert needs.staging_bytes(one) == needs.staging_bytes(ten)  # of the vocabulary's photos alone
        assert needs.front_memory(ten) < 10 * needs.front_memory(one)


def test_a_hundred_thousand_photos_need_what_they_were_measured_to() -> None:
    load = LOADS[0]
    # Segments of 200,057,300 features took 3.13 GB, indexing a photo of landmarks 0.24 seconds of a core.
    assert needs.segment_bytes(load) == pytest.approx(3.13e9, rel=0.01)
    assert needs.worker_hours(load) == pytest.approx(100_000 * 0.287 / 3600 + 0.7)
    assert needs.segments(load) == 5 and needs.shards(load) == 5


def test_more_cores_help_until_the_front_is_the_slower() -> None:
    load = Workload(10_000_000, 1)
    most = needs.most_cores(load)
    assert 20 < most < 200
    times = [needs.hours(replace(load, cores=cores)) for cores in (1, 8, most, 2 * most, 4 * most)]
    assert times[0] > times[1] > times[2]
    assert times[3] == times[4] == pytest.approx(times[2], rel=0.05)
    assert needs.bits_a_second(replace(load, cores=4 * most)) == needs.bits_a_second(replace(load, cores=most))


def test_pixels_and_features_count() -> None:
    load = LOADS[1]
    larger = replace(load, photo_bytes=2 * load.photo_bytes)
    assert needs.photo_traffic(larger) == 2 * needs.photo_traffic(load)
    assert needs.segment_bytes(replace(load, features=1_000)) == needs.segment_bytes(load) / 2
    # k-means takes at most fifty descriptors a word.
    rich, richer = replace(load, features=5_000), replace(load, features=50_000)
    assert needs.kmeans_traffic(rich) == needs.kmeans_traffic(richer)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.05512, "0.055"), (4.04, "4"), (12.3, "12"), (99.6, "100"), (1234, "1,200"), (345678, "350,000")],
)
def test_figures_are_told_by_two_digits(value: float, text: str) -> None:
    assert needs.readable(value) == text


def test_the_command_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["needs", "--photos", "5000", "--cores", "2", "--photo-megabytes", "1"])
    needs.main()
    out = capsys.readouterr().out
    assert out.startswith("| | 5,000 |\n|---|---|\n| cores of workers | 2 |\n")
    assert "| disk: the photos, GB | 5 |" in out
    monkeypatch.setattr("sys.argv", ["needs", "--cores", "2"])
    with pytest.raises(SystemExit):
        needs.main()
