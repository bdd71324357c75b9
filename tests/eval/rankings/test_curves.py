"""Precision against recall: by definition, and through a table."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.rankings.curves import RECALLS, Curves, interpolated, is_table_of_curves, precision_recall, read_curves
from eval.rankings.curves import write_curves as write
from index.errors import CairnError


@given(hits=st.lists(st.booleans(), max_size=40), missed=st.integers(0, 5))
def test_interpolated_precision_is_the_largest_at_a_recall_or_beyond(hits: list[bool], missed: int) -> None:
    positives = sum(hits) + missed
    if not positives:
        return
    recall, precision = precision_recall(np.array(hits, bool), positives)
    curve = interpolated(np.array(hits, bool), positives)
    for wanted, found in zip(RECALLS, curve, strict=True):
        at = [p for r, p in zip(recall, precision, strict=True) if r >= max(wanted, 1 / positives) - 1e-12]
        assert found == pytest.approx(max(at, default=0.0))


def test_a_table_keeps_curves_and_their_mean(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    curves = {name: Curves({f"{name} {n}": rng.random(101) for n in range(3)}) for name in ("easy", "hard")}
    path = tmp_path / "pr.csv"
    write(path, curves)
    assert is_table_of_curves(path)
    read = read_curves(path)
    for name, one in curves.items():
        assert read[name].queries.keys() == one.queries.keys()
        np.testing.assert_allclose(read[name].mean, np.mean(list(one.queries.values()), axis=0), atol=1e-9)
    lines = path.read_text().splitlines()
    assert lines[1].startswith("easy,(mean),0.00,")
    path.write_text("\n".join(lines[:150]))  # cut short within a query
    with pytest.raises(CairnError, match="no precision at 101 recalls"):
        read_curves(path)
    path.write_text("protocol,query,recall,precision\na,b,c\n")
    with pytest.raises(CairnError, match="line 2"):
        read_curves(path)
