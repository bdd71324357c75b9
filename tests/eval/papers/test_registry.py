"""The experiments of the papers: their numbers, and valid command lines."""

import pytest
import typer

from cairn import make_app
from eval.papers.registry import chosen, experiments
from eval.reproduce.measures import Value
from eval.reproduce.plan import Cell, Drawing, Plot, Table
from eval.reproduce.steps import Data, Here, Made, Printed, Scale, Step
from index.errors import CairnError
from retrieval.descriptors.registry import find_descriptor

ALL = experiments()


def filled(step: Step) -> list[str]:
    """The arguments of a step, with names in the places of files and folders."""
    found = []
    for one in step.arguments:
        if isinstance(one, Data):
            found.append(f"/sets/{one.name}")
        elif isinstance(one, Here | Made):
            found.append(f"/steps/{one.name}")
        elif isinstance(one, Printed):
            found.append(f"{one.prefix}0.65")
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
        ("yan13/table4", "Paris6K, 3-NN", "unknowns", 1732),
        ("simonyan14/text-lsh", "mean of six", "LSH less frame", 3.07),
        ("simonyan14/text-regions", "HesAff", "upright less turned", 5.1),
        ("revisited/table5", "ROxford, asmk-sp", "hard", 36.7),  # the paper's is verified by geometry
        ("revisited/million", "RParis + 1M, asmk-sp", "hard", 16.8),
        ("yan13/table3", "(i) this paper, rootSIFT, independent", "Paris6K", 0.792),
    ],
)
def test_published_numbers_stand_where_the_papers_have_them(name: str, row: str, column: str, value: float) -> None:
    assert published(name, row, column) == value


@pytest.mark.parametrize("name", ["simonyan14/table1", "simonyan14/table2", "simonyan14/table3"])
def test_printed_means_are_those_of_the_printed_numbers(name: str) -> None:
    """The paper's own arithmetic detects a misread number, to the last printed digit."""
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
    """Three digits of mAP determine a gain to about 0.15 percent."""
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
    both = ["revisited/table5", "revisited/million"]
    assert [one.name for one in chosen(["revisited", "revisited/table5"], Scale())] == both
    assert len(chosen(["all"], Scale())) == len(ALL)
    with pytest.raises(CairnError, match="no experiment 'simonyan14/table9'"):
        chosen(["simonyan14/table9"], Scale())


def test_every_experiment_tells_what_it_needs() -> None:
    for one in ALL.values():
        assert one.data, one.name
        assert one.hours > 0, one.name
        assert one.source and one.title and one.parts


def cells(name: str, number: int = 0) -> list[Cell]:
    return list([part for part in ALL[name].parts if isinstance(part, Table)][number].cells)


def test_every_experiment_says_where_it_differs_from_the_paper() -> None:
    for one in ALL.values():
        assert one.differs, one.name
        assert all(sentence.endswith(".") for sentence in (*one.differs, *one.notes)), one.name


def test_spreads_are_published_as_the_paper_has_them() -> None:
    hours = {cell.row: (cell.published, cell.published_spread) for cell in cells("yan13/table4", 1)}
    assert (hours["Oxford5K, 2-NN"], hours["Paris6K, 3-NN"]) == ((7.0, 0.9), (10.5, 0.7))
    learnt = {cell.row: cell for cell in cells("yan13/table2") if cell.column == "learnt"}
    assert learnt["Paris6K, sift, SR/QE"].published_spread == 0.019
    assert [part.unit for part in ALL["yan13/table4"].parts if isinstance(part, Table)][1] == "Hours"


def test_brown11_compares_with_sift_at_its_best_footprint_and_tells_our_dimensions() -> None:
    for name in ("table1", "table2", "table3", "table4", "table5"):
        for cell in cells(f"brown11/{name}"):
            assert cell.ours is not None and cell.detail is not None
            if cell.column == "SIFT":
                (tested,) = cell.ours.steps
                share = tested.arguments[tested.arguments.index("--footprint") + 1]
                assert isinstance(share, Printed) and share.step.arguments[:2] == ("evaluate", "footprint")
                assert share.step.data == ["liberty"] and share.path == ("best", "sift")
    drawn = ALL["brown11/figure10"].parts[0]
    assert isinstance(drawn, Drawing)
    assert "T3h" in drawn.step.arguments  # the curve NSSD
    both = ALL["brown11/figure6"].parts[2]
    assert isinstance(both, Drawing)
    assert any(isinstance(one, Printed) and not one.prefix for one in both.step.arguments)


def test_codes_are_told_with_their_bits() -> None:
    reported = {
        cell.column: (cell.published_detail, cell.detail is not None) for cell in cells("simonyan14/table3")[:7]
    }
    assert reported["PR-proj-pq 80f → 1024pq"] == (1024, True)
    assert reported["Boix13"] == (1360, False)


def test_trzcinski12_learns_from_the_published_list_and_compares_with_1024_grey_values() -> None:
    learning = [one for one in ALL["trzcinski12/figure4"].steps if one.arguments[0] == "learn"]
    assert {one.arguments[one.arguments.index("--pair-file") + 1] for one in learning} == {"m50_200000_200000_0.txt"}
    assert not any("--pairs" in one.arguments for one in learning)
    ssd = next(cell for cell in cells("trzcinski12/figure4") if cell.row == "SSD")
    assert ssd.ours is not None and ssd.published_detail == find_descriptor("ssd-32").dim
    assert "ssd-32" in ssd.ours.steps[0].arguments


def test_both_detectors_share_an_axis_in_scales_of_the_detection() -> None:
    (plot,) = ALL["simonyan14/figure8"].parts
    assert isinstance(plot, Plot)
    factors = {}
    for series in plot.series:
        for size, measure in series.points:
            (step,) = (one for one in [measure] if isinstance(one, Value))
            arguments = step.step.arguments
            factors[series.label, size] = float(str(arguments[arguments.index("--measurement-scale") + 1]))
    assert factors["HesAff", 5.196] == pytest.approx(3**0.5, abs=1e-3)  # of a region of 3 σ
    assert factors["DoGAff", 12.5] == 12.5  # of a region of σ
    assert factors["HesAff", 12.5] == pytest.approx(12.5 / 3, abs=1e-3)
