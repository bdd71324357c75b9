"""What an experiment is: its steps in order, its data, its tables."""

from eval.reproduce.measures import Mean, Value
from eval.reproduce.plan import Cell, Experiment, Table
from eval.reproduce.steps import Data, Here, Made, Step

LEARN = Step("learn", ("learn", "descriptor", Data("liberty"), "--out", Here("d.npz")), 2.0)
TEST = Step("test", ("evaluate", "patches", Data("notredame"), "--descriptor", Made(LEARN, "d.npz")), 0.5)
OTHER = Step("test", ("evaluate", "patches", Data("yosemite"), "--descriptor", Made(LEARN, "d.npz")), 0.5)


def test_steps_come_after_what_they_build_on_and_each_once() -> None:
    table = Table("t", "%", (Cell("a", "b", Value(TEST, ("x",))), Cell("c", "b", Mean((Value(OTHER, ("x",)),)))))
    experiment = Experiment("p/table1", "title", "source", (table,))
    assert experiment.steps == [LEARN, TEST, OTHER]
    assert experiment.data == ["liberty", "notredame", "yosemite"]
    assert experiment.hours == 3.0
    assert (table.rows, table.columns) == (["a", "c"], ["b"])
