"""Plans of experiments: steps in order, data, tables."""

from eval.reproduce.measures import Mean, Measure, Spread, Value
from eval.reproduce.plan import Cell, Experiment, Table, repeated
from eval.reproduce.steps import Data, Here, Made, Step

LEARN = Step("learn", ("learn", "descriptor", Data("liberty"), "--out", Here("d.npz")), 2.0)
TEST = Step("test", ("evaluate", "patches", Data("notredame"), "--descriptor", Made(LEARN, "d.npz")), 0.5)
OTHER = Step("test", ("evaluate", "patches", Data("yosemite"), "--descriptor", Made(LEARN, "d.npz")), 0.5)


def test_steps_come_after_what_they_build_on_and_each_once() -> None:
    table = Table("t", "%", (Cell("a", "b", Value(TEST, ("x",))), Cell("c", "b", Mean((Value(OTHER, ("x",)),)))))
    experiment = Experiment("p/table1", "title", "source", (table,), ())
    assert experiment.steps == [LEARN, TEST, OTHER]
    assert experiment.data == ["liberty", "notredame", "yosemite"]
    assert experiment.hours == 3.0
    assert (table.rows, table.columns) == (["a", "c"], ["b"])


def error(measure: Measure | None, *errors: float) -> float | None:
    """The value of a measure whose steps printed these numbers in order."""
    assert measure is not None
    keys = dict.fromkeys(step.key for step in measure.steps)
    return measure.of({key: {"x": value} for key, value in zip(keys, errors, strict=True)})


def test_several_runs_have_other_seeds_and_their_mean_and_spread() -> None:
    plain = Step("plain", ("evaluate", "patches", Data("liberty"), "--descriptor", "sift"))
    table = Table("t", "%", (Cell("a", "b", Value(TEST, ("x",)), 3.0), Cell("a", "sift", Value(plain, ("x",)))))
    once = Experiment("p/table1", "title", "source", (table,), ())
    assert repeated(once, 1) is once
    three = repeated(once, 3)
    learning = [step for step in three.steps if step.arguments[0] == "learn"]
    assert learning[0] == LEARN
    assert [step.arguments[-2:] for step in learning[1:]] == [("--seed", "1000"), ("--seed", "2000")]
    assert len(three.steps) == 2 * 3 + 1  # what is not random runs once
    part = three.parts[0]
    assert isinstance(part, Table)
    learnt, sift = part.cells
    assert error(learnt.ours, 1.0, 2.0, 6.0) == 3.0
    assert error(learnt.spread, 1.0, 2.0, 6.0) == 7**0.5  # (4 + 1 + 9) / 2
    assert (learnt.published, sift.spread) == (3.0, None)


def test_runs_of_an_experiment_by_itself_are_spread_over_all_seeds() -> None:
    first, second = (Step("s", ("learn", "similarity", "--seed", seed, "--out", Here("s.npz"))) for seed in "01")
    own = Value(first, ("x",)), Value(second, ("x",))
    table = Table("t", "%", (Cell("a", "b", Mean(own), spread=Spread(own)),))
    part = repeated(Experiment("p/table1", "title", "source", (table,), ()), 2).parts[0]
    assert isinstance(part, Table)
    (cell,) = part.cells
    assert cell.ours is not None
    assert [step.arguments[3] for step in cell.ours.steps] == ["0", "1", "1000", "1001"]
    assert error(cell.spread, 1.0, 3.0, 1.0, 3.0) == (4 / 3) ** 0.5
