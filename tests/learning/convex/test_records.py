"""Records of models: written atomically, read back, and used for model selection."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from learning.convex import records as module
from learning.convex.records import ModelRecords, Record, best
from learning.latent.models import LatentRecord

RECORD = Record("pooling", "a" * 64, 0.3, 0.1, 64, 3, 0.05, 0.4, 0, 1.5)


def record(key: str = "a", **changes: object) -> Record:
    return replace(RECORD, key=key * 64, **changes)


def test_what_is_added_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    records = ModelRecords(tmp_path / "new" / "work", Record)
    weights = [np.array([0.0, 0.1, 1 / 3]), np.eye(2, 5)]
    models = [(record("a"), weights[0]), (record("a", refits=1, dim=32), weights[1])]
    records.add(models)
    records.add([(record("b", stage="projection"), weights[1])])
    for found in (records, ModelRecords(tmp_path / "new" / "work", Record)):
        assert found.of("a" * 64) == [RECORD, record("a", refits=1, dim=32)]
        assert found.of("b" * 64) == [record("b", stage="projection")]
        assert found.of("c" * 64) == []
        assert len(found.all) == 3
        # To the last bit.
        np.testing.assert_array_equal(found.parameters(found.all[0]), weights[0])
        np.testing.assert_array_equal(found.parameters(found.all[1]), weights[1])


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_run_killed_between_its_files_and_its_table_has_learnt_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """All of one model's steps are stored, or none: a resumed run learns them again."""
    records = ModelRecords(tmp_path, Record)
    records.add([(record("a"), np.ones(3))])
    written = []

    def save(path: Path, array: np.ndarray) -> None:
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(path)
        np.save(path, array)

    def save_table(path: Path, table: object) -> None:
        raise KeyboardInterrupt

    both = [(record("b"), np.zeros(3)), (record("b", refits=1), np.ones(3))]
    with monkeypatch.context() as patch:
        patch.setattr(module, "save_array", save)
        patch.setattr(module, "save_json", save_table)
        with pytest.raises(KeyboardInterrupt):
            records.add(both)
    assert len(written) == after
    again = ModelRecords(tmp_path, Record)
    assert again.all == [RECORD]
    # Learning again overwrites leftovers.
    again.add([(one, parameters + 5) for one, parameters in both])
    assert len(ModelRecords(tmp_path, Record).of("b" * 64)) == 2
    np.testing.assert_array_equal(again.parameters(both[0][0]), np.full(3, 5))


@pytest.mark.parametrize(
    "contents",
    ["", "[", "null", "3", '"text"', "[3]", "[{}]", '["pooling"]', '{"stage": "pooling"}', '[{"stage": "pooling"}]'],
)
def test_a_damaged_table_is_refused(tmp_path: Path, contents: str) -> None:
    (tmp_path / "records.json").write_text(contents)
    with pytest.raises(CairnError, match=r"records\.json is damaged"):
        ModelRecords(tmp_path, Record)


def test_a_table_of_another_kind_of_source_says_so(tmp_path: Path) -> None:
    ModelRecords(tmp_path, Record).add([(RECORD, np.ones(1))])
    with pytest.raises(CairnError, match="give another folder"):
        ModelRecords(tmp_path, LatentRecord)


def test_a_table_of_another_version_is_refused(tmp_path: Path) -> None:
    ModelRecords(tmp_path, Record).add([(RECORD, np.ones(1))])
    file = tmp_path / "records.json"
    file.write_text(json.dumps([entry | {"colour": 3} for entry in json.loads(file.read_text())]))
    with pytest.raises(CairnError, match="to begin again"):
        ModelRecords(tmp_path, Record)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:40])])
def test_lost_weights_are_told(tmp_path: Path, damage: object) -> None:
    records = ModelRecords(tmp_path, Record)
    records.add([(RECORD, np.ones(8))])
    (file,) = tmp_path.glob("*.npy")
    damage(file)  # type: ignore[operator]
    with pytest.raises(CairnError, match=file.name):
        records.parameters(RECORD)


class TestBest:
    def test_of_equal_errors_the_fewest_dimensions_and_then_always_the_same(self) -> None:
        few, many = record("b", dim=40), record("a", dim=64)
        assert best([many, few], 80) is few
        assert best([few, many], 80) is few
        assert best([record("c"), record("b"), record("a"), record("b")], 80) == record("a")

    def test_less_error_is_better_whatever_it_takes(self) -> None:
        assert best([record(dim=40, fpr95=0.05), record(dim=80, fpr95=0.04), record(dim=81, fpr95=0)], 80) == record(
            dim=80, fpr95=0.04
        )

    def test_what_selects_nothing_or_too_much_is_no_choice(self) -> None:
        assert best([record(dim=0, fpr95=0), record(dim=81, fpr95=0)], 80) is None
        assert best([], 80) is None

    @given(
        st.lists(
            st.builds(
                record,
                key=st.sampled_from("abcd"),
                dim=st.integers(0, 6),
                fpr95=st.sampled_from([0.0, 0.25, 0.5]),
            )
        ),
        st.integers(1, 6),
        st.randoms(),
    )
    def test_the_order_they_come_in_does_not_matter(self, found: list[Record], limit: int, random) -> None:
        chosen = best(found, limit)
        shuffled = list(found)
        random.shuffle(shuffled)
        assert best(shuffled, limit) == chosen
        fitting = [one for one in found if 1 <= one.dim <= limit]
        assert (chosen is None) == (not fitting)
        assert all((chosen.fpr95, chosen.dim) <= (one.fpr95, one.dim) for one in fitting)
