"""Command: reproduce."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval.reproduce.options import ReproduceOptions
from index.attributes import some_of
from index.options.declaration import build
from index.options.panels import DATA, OUTPUT, RUNNING
from retrieval.commands.console import note, print_json, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet

if TYPE_CHECKING:
    from eval.reproduce.plan import Experiment
    from eval.reproduce.running import Bench, Standing

LIST = "list"
"""Name that lists the experiments instead of running any."""


@grouped
def reproduce(
    *,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Experiments, such as simonyan14/table1; all of a paper, such as brown11; all; or list, to list them.",
        ),
    ],
    root: Annotated[
        Path,
        typer.Option(rich_help_panel=DATA, help="Folder of the published sets, as cairn data get fills it."),
    ] = Path(),
    options: Annotated[dict[str, Any], OptionsOf(ReproduceOptions)],
    out: Annotated[
        Path,
        typer.Option(rich_help_panel=OUTPUT, help="Folder of the pages, and of all that is computed on the way."),
    ] = Path("cairn-reproduced"),
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", rich_help_panel=RUNNING, help="Print the commands that are left, and run none."),
    ] = False,
    quiet: bool = Quiet,
    json: bool = Json,
) -> int:
    """Run the experiments of papers again, each with one command, and compare the published numbers with ours.

    Each table or figure becomes a page with its plots, and the same numbers as CSV and JSON. An experiment is a list
    of commands of cairn, as anybody could type them; what experiments have in common is computed once, and a stopped
    run goes on where it was. Each page says where it differs from the paper. All numbers that the commands print are
    added to log.jsonl. At full scale most take hours or days: the list shows how many.
    """
    from eval.papers.registry import chosen
    from eval.reproduce.plan import repeated
    from eval.reproduce.running import Bench
    from eval.reproduce.steps import Scale

    if names == [LIST]:
        _list(json=json)
        return 0
    how = build(ReproduceOptions, options)
    experiments = [repeated(one, how.seeds) for one in chosen(names, Scale(how.scale))]
    bench = Bench(root, out / "steps", how.workers, planning=dry_run)
    if dry_run:
        _print_commands(experiments, bench, json=json)
        return 0
    return _run(experiments, bench, out, how.scale, quiet=quiet or json, json=json)


def _list(*, json: bool) -> None:
    from eval.papers.registry import experiments

    known = list(experiments().values())
    if json:
        print_json({"experiments": [_about(one) for one in known]})
        return
    width = max(len(one.name) for one in known)
    for one in known:
        say(f"{one.name:{width}}  {_duration(one.hours):>9}  {one.title} ({', '.join(one.data)})")
    say("Times are rough, of each experiment alone, on two cores; experiments share what they have in common.")


def _about(experiment: "Experiment") -> dict[str, Any]:
    return {
        **some_of(experiment, "name", "title", "source", "data"),
        "commands": len(experiment.steps),
        "hours": round(experiment.hours, 2),
        "differs": list(experiment.differs),
    }


def _print_commands(experiments: "list[Experiment]", bench: "Bench", *, json: bool) -> None:
    steps = list(dict.fromkeys(step for experiment in experiments for step in experiment.steps))
    left = [step for step in steps if bench.result(step) is None]
    if json:
        commands = [{"title": step.title, "command": bench.command(step), "hours": step.hours} for step in left]
        print_json({"commands": commands, "done": len(steps) - len(left)})
        return
    for step in left:
        say(f"# {step.title}, about {_duration(step.hours)}")
        say(bench.command(step))


def _run(experiments: "list[Experiment]", bench: "Bench", out: Path, scale: float, *, quiet: bool, json: bool) -> int:
    """Run experiments; the exit code is 1 if one of several failed."""
    from eval.library.reproduce import run_experiments
    from eval.reproduce.pages import CONTENTS, DIFFERS
    from index.errors import CairnError

    failed: list[dict[str, str]] = []

    def begin(experiment: "Experiment") -> None:
        if not quiet:
            note(f"{experiment.name} ({experiments.index(experiment) + 1} of {len(experiments)}): {experiment.title}")

    def fail(experiment: "Experiment", error: CairnError) -> None:
        if len(experiments) == 1:
            raise error
        failed.append({"experiment": experiment.name, "reason": str(error)})
        note(f"{experiment.name}: {error}")

    results = []
    tell = (lambda standing: None) if quiet else _tell
    for one in run_experiments(experiments, bench, out, scale, tell, fail, begin):
        results.append(one.to_dict())
        if not quiet:
            say(f"{one.page}:")
            for line in _summary(results[-1]):
                say(f"  {line}")
            say(f"  {DIFFERS}:")
            for sentence in one.differs:
                say(f"  - {sentence}")
    if json:
        print_json({"experiments": results, "contents": str(out / CONTENTS), "failed": failed})
    return 1 if failed else 0


def _tell(standing: "Standing") -> None:
    left = f"about {_duration(standing.hours_left)} left"
    note(f"{standing.done + 1} of {standing.of}, {standing.title}: about {_duration(standing.hours)}; {left}")


def _summary(result: dict[str, Any]) -> list[str]:
    """Summarise each table: number of values, and median difference from the published ones."""
    from statistics import median

    if result["scale"] != 1:
        return [f"Run at the scale {result['scale']:g}: its numbers cannot be compared with the published ones."]
    lines = []
    for table in result["tables"]:
        off = [abs(cell["difference"]) for cell in table["cells"] if cell["difference"] is not None]
        if off:
            count = f"{len(off)} published number{'s' * (len(off) > 1)}"
            lines.append(f"{table['title']}: {count}, ours off by {median(off):.3g} in the median ({table['unit']})")
    return lines or ["No number was published that ours can be compared with."]


def _duration(hours: float) -> str:
    if hours < 1:
        return f"{max(1, round(60 * hours))} min"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
