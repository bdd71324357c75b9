"""Powell's method on areas whose maximum is known."""

import numpy as np
import pytest

from index.errors import CairnError
from learning.blocks.powell import PowellOptions, Trials, best_of, from_point, maximise_area, to_coordinate
from retrieval.descriptors.blocks.parameters import Parameter, defaults, length

PARAMETERS = [length("width", 4.0), length("radius", 10.0), Parameter("phase", 0.4, 0, 0.8, length=False, ratio=False)]
BEST = {"width": 6.5, "radius": 7.0, "phase": 0.55}


def hill(values):
    """An area with one top, whose axes are turned against the parameters'."""
    a = np.log(values["width"] / BEST["width"])
    b = np.log(values["radius"] / BEST["radius"])
    c = values["phase"] - BEST["phase"]
    return 0.99 - 0.1 * (a**2 + b**2 + 1.2 * a * b) - 0.05 * c**2 + 0.02 * a * c


def test_it_finds_the_top():
    tried = maximise_area(hill, PARAMETERS, defaults(PARAMETERS), PowellOptions(tolerance=1e-4))
    best = best_of(tried)
    assert tried[0].parameters == defaults(PARAMETERS)
    assert best.area == max(trial.area for trial in tried) > 0.9899 > tried[0].area
    for name, value in BEST.items():
        assert best.parameters[name] == pytest.approx(value, rel=0.1)


def test_it_stays_within_the_limits_and_finds_a_top_on_one():
    tried = maximise_area(lambda values: values["width"] / 100, PARAMETERS[:1], {"width": 4.0})
    assert all(4 / 3 - 1e-6 <= trial.parameters["width"] <= 12 + 1e-6 for trial in tried)
    assert best_of(tried).parameters["width"] == pytest.approx(12, rel=0.05)


def test_a_beginning_outside_the_limits_is_brought_within():
    tried = maximise_area(
        hill, PARAMETERS, {"width": 100.0, "radius": 10.0, "phase": -3.0}, PowellOptions(evaluations=1)
    )
    assert tried[0].parameters == {"width": 12.0, "radius": 10.0, "phase": 0.0} and len(tried) == 1


@pytest.mark.parametrize("number", [1, 2, 17])
def test_there_are_no_more_evaluations_than_asked_for(number):
    requested = []
    tried = maximise_area(
        lambda values: requested.append(values) or hill(values),
        PARAMETERS,
        defaults(PARAMETERS),
        PowellOptions(evaluations=number, tolerance=1e-9),
    )
    assert len(tried) == len(requested) == number


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    path, options = tmp_path / "powell.json", PowellOptions(evaluations=60)
    whole = maximise_area(hill, PARAMETERS, defaults(PARAMETERS), options)
    calls = []

    def dying(values):
        calls.append(values)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return hill(values)

    with pytest.raises(KeyboardInterrupt):
        maximise_area(dying, PARAMETERS, defaults(PARAMETERS), options, Trials(path, "key"))
    again = []
    tried = maximise_area(
        lambda values: again.append(values) or hill(values),
        PARAMETERS,
        defaults(PARAMETERS),
        options,
        Trials(path, "key"),
    )
    assert tried == whole and len(again) == len(whole) - 19
    none = []
    maximise_area(
        lambda values: none.append(values) or hill(values),
        PARAMETERS,
        defaults(PARAMETERS),
        options,
        Trials(path, "key"),
    )
    assert not none
    assert not Trials(path, "another").all


@pytest.mark.parametrize("number", [1, 5, 29])
def test_a_longer_run_before_changes_no_result(number, tmp_path):
    longer, fewer = PowellOptions(evaluations=30), PowellOptions(evaluations=number)
    path = tmp_path / "powell.json"
    maximise_area(hill, PARAMETERS, defaults(PARAMETERS), longer, Trials(path, "key"))
    fresh = maximise_area(hill, PARAMETERS, defaults(PARAMETERS), fewer)
    again = maximise_area(
        lambda _: pytest.fail("evaluated again"), PARAMETERS, defaults(PARAMETERS), fewer, Trials(path, "key")
    )
    assert again == fresh and len(again) == number


@pytest.mark.parametrize(
    "contents",
    [
        "[]",
        "{}",
        '{"key": "key"}',
        '{"key": "key", "trials": [3]}',
        "{",
        '"key"',
        '{"key": "key", "trials": [{"parameters": {}, "area": 7}]}',
        '{"key": "key", "trials": [{"parameters": {}, "area": NaN}]}',
        '{"key": "key", "trials": [{"parameters": {}, "area": true}]}',
        '{"key": "key", "trials": [{"parameters": {}, "area": "0.5"}]}',
        '{"key": "key", "trials": [{"parameters": {"w": [1]}, "area": 0.5}]}',
        '{"key": "key", "trials": [{"parameters": {"w": "x"}, "area": 0.5}]}',
        '{"key": "key", "trials": [{"parameters": {"w": true}, "area": 0.5}]}',
        '{"key": "key", "trials": [{"parameters": {"w": null}, "area": 0.5}]}',
        '{"key": "key", "trials": [{"parameters": {"w": Infinity}, "area": 0.5}]}',
        '{"key": "key", "trials": [{"parameters": {"w": 1' + 400 * "0" + '}, "area": 0.5}]}',
        '{"key": "key", "trials": [{"parameters": [["w", 1]], "area": 0.5}]}',
    ],
)
def test_a_damaged_file_is_told(contents, tmp_path):
    path = tmp_path / "powell.json"
    path.write_text(contents)
    with pytest.raises(CairnError, match=r"powell\.json"):
        Trials(path, "key")


def test_coordinates_and_values_are_each_other_s_inverse():
    values = {"width": 3.25, "radius": 17.5, "phase": 0.3}
    point = np.array([to_coordinate(values[one.name], one) for one in PARAMETERS])
    assert from_point(point, PARAMETERS) == pytest.approx(values)
    assert from_point(point + 100, PARAMETERS) == {"width": 12.0, "radius": 30.0, "phase": 0.8}
