"""The experiments of the papers: their numbers, and that their command lines are ones that Cairn takes."""

import pytest
import typer

from cairn import make_app
from eval.papers.registry import chosen, experiments
from eval.reproduce.plan import Drawing, Table
from eval.reproduce.steps import Data, Here, Made, Scale, Step
from index.errors import CairnError

ALL = experiments()


def filled(step: Step) -> list[str]:
    """The arguments of a step, with names in the places of files and folders."""
    found = []
    for one in step.arguments:
        if isinstance(one, Data):
            found.append(f"/sets/{one.name}")
        elif isinstance(one, Here | Made):
            found.append(f"/steps/{one.name}")
        else:
            found.append(one)
    return [*found, "--json"] if step.prints else found


@pytest.mark.parametrize("share", [0.05, *(pytest.param(one, marks=pytest.mark.slow) for one in (1.0, 0.001))])
def test_every_command_line_is_one_that_cairn_takes(share: float) -> None:
    app = typer.main.get_command(make_app())
    lines = {tuple(filled(step)) for one in experiments(Scale(share)).values() for step in one.steps}
    for line in sorted(lines):
        command, context, left = app, None, list(line)
        while hasattr(command, "resolve_command"):
            context = typer.Context(command, info_name="cairn", parent=context)
            _, command, left = command.resolve_command(context, left)
        try:
            command.make_context(line[0], left, parent=context)
        except Exception as error:
            raise AssertionError(f"{' '.join(line)}: {error}") from error
    assert {line[0] for line in lines} == {"compress", "evaluate", "learn", "mine", "plot"}


def published(name: str, row: str, column: str, number: int = 0) -> float | None:
    table = [part for part in ALL[name].parts if isinstance(part, Table)][number]
    return next(cell.published for cell in table.cells if (cell.row, cell.column) == (row, column))


@pytest.mark.parametrize(
    ("name", "row", "column", "value"),
    [
        ("simonyan14/table1", "Lib → Yos", "PR ≤ 384", 12.99),
        ("simonyan14/table1", "mean 1–4", "Brown11", 18.17),
        ("simonyan14/table2", "mean", "PR-proj ≤ 80", 10.38),
        ("simonyan14/table3", "ND → Lib", "PR-proj-pq 80f → 1024pq", 12.42),
        ("simonyan14/table4", "Paris6K, PR-proj", "tf-idf-sp", 0.827),
        ("simonyan14/table5", "Oxford5K, PR-proj", "tf-idf", 0.709),
        ("simonyan14/table5", "Paris6K, Philbin10, non-linear", "tf-idf-sp", 0.689),
        ("brown11/table1", "ND → Yos", "T3j-S2-17", 15.91),
        ("brown11/table4", "ND → Lib", "pca", 16.85),
        ("trzcinski12/figure3", "BGM-256", "Lib → ND", 15.99),
        ("yan13/table2", "Oxford105K, rootsift, SR/QE", "learnt", 0.815),
        ("yan13/table4", "Paris6K, 3-NN", "pairs of words, thousands", 1232),
        ("revisited/table5", "ROxford, asmk-sp", "hard", 36.7),  # the paper's is verified by geometry
        ("yan13/table3", "(i) this paper, rootSIFT, independent", "Paris6K", 0.792),
    ],
)
def test_published_numbers_stand_where_the_papers_have_them(name: str, row: str, column: str, value: float) -> None:
    assert published(name, row, column) == value


@pytest.mark.parametrize("name", ["simonyan14/table1", "simonyan14/table2", "simonyan14/table3"])
def test_printed_means_are_those_of_the_printed_numbers(name: str) -> None:
    """The paper's own arithmetic finds a number that was read wrongly, to the last digit that it prints."""
    table = next(part for part in ALL[name].parts if isinstance(part, Table))
    for column in table.columns:
        cells = {cell.row: cell.published for cell in table.cells if cell.column == column}
        rows = list(cells.values())[:6]
        for title, values in (("mean", rows), ("mean 1–4", rows[:4])):
            printed = cells[title]
            if printed is not None and None not in values:
                assert sum(v for v in values if v is not None) / len(values) == pytest.approx(printed, abs=0.011), (
                    column
                )


@pytest.mark.parametrize(
    ("name", "base", "better"), [("simonyan14/table5", "SIFT", None), ("yan13/table2", "tf-idf", "learnt")]
)
def test_printed_gains_are_those_of_the_printed_numbers(name: str, base: str, better: str | None) -> None:
    """Three digits of mAP tell a gain to about 0.15 percent."""
    known, gains = (part for part in ALL[name].parts if isinstance(part, Table))
    maps = {(cell.row, cell.column): cell.published for cell in known.cells}
    for cell in gains.cells:
        if better is None:  # a row for each descriptor
            before, after = maps[cell.row.rpartition(", ")[0] + f", {base}", cell.column], maps[cell.row, cell.column]
        else:
            before, after = maps[cell.row, base], maps[cell.row, better]
        assert before and after
        assert 100 * (after / before - 1) == pytest.approx(cell.published, abs=0.15), cell.row


def test_projections_are_drawn_of_all_embeddings_on_both_sets() -> None:
    for part, name in zip(ALL["brown11/figure12"].parts, ("liberty_harris", "liberty"), strict=True):
        assert isinstance(part, Drawing)
        learnt = [one for one in part.step.before if Data(name) in one.arguments]
        embeddings = [one.arguments[one.arguments.index("--embedding") + 1] for one in learnt]
        assert embeddings == ["lpp", "olpp", "lde", "olde", "glde", "golde", "pca"]


def test_experiments_share_what_they_have_in_common() -> None:
    def steps(*names: str) -> set[Step]:
        return {step for name in names for step in ALL[name].steps}

    learning = {step for step in steps("simonyan14/table1") if step.arguments[0] == "learn"}
    assert sum(step.arguments[4:6] == ("--stage", "pooling") for step in learning & steps("simonyan14/table2")) == 3
    assert len(steps("brown11/table2") ^ steps("brown11/table3")) == 0


def test_a_paper_and_all_are_names_too() -> None:
    assert [one.name for one in chosen(["revisited", "revisited/table5"], Scale())] == ["revisited/table5"]
    assert len(chosen(["all"], Scale())) == len(ALL)
    with pytest.raises(CairnError, match="no experiment 'simonyan14/table9'"):
        chosen(["simonyan14/table9"], Scale())


def test_every_experiment_tells_what_it_needs() -> None:
    for one in ALL.values():
        assert one.data, one.name
        assert one.hours > 0, one.name
        assert one.source and one.title and one.parts
