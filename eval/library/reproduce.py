"""Reproduction of experiments of papers, as a function of `import cairn`; `cairn reproduce` calls it too."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eval.reproduce.options import ReproduceOptions
from index.docstrings import documented
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from learning.library.paths import AnyPath, as_path
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from eval.reproduce.plan import Experiment
    from eval.reproduce.running import Bench, Standing

_STEP = "reproduce"


@documented
@dataclass(frozen=True, eq=False)
class Reproduced:
    """A reproduced experiment."""

    name: Annotated[str, "Of the experiment, such as simonyan14/table1."]
    title: Annotated[str, "Its title."]
    page: Annotated[Path, "Its page; the same numbers are next to it as CSV and JSON."]
    tables: Annotated[
        list[dict[str, Any]], "Title, unit and cells of each table: row, column, ours, published, difference."
    ] = field(repr=False)
    differs: Annotated[tuple[str, ...], "Where it differs from the paper, in sentences."] = field(repr=False)
    _summary: dict[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, as ``cairn reproduce --json`` prints it."""
        return {**self._summary, "page": str(self.page)}


@takes_options(ReproduceOptions)
def reproduce(
    names: str | Sequence[str],
    root: AnyPath = ".",
    *,
    out: AnyPath = "cairn-reproduced",
    progress: Telling = None,
    **options: Any,
) -> list[Reproduced]:
    """Run experiments of papers again, and compare the published numbers with ours.

    Common steps of experiments are computed once, and a stopped call can be resumed. At full scale most take hours or
    days: ``cairn reproduce list`` shows how many.

    Parameters
    ----------
    names : str or sequence of str
        Experiments, such as simonyan14/table1; all of a paper, such as brown11; or all.
    root : path
        Folder of the published sets.
    out : path
        Folder of the pages and of intermediate results.
    progress : None, bool or callable
        Progress: none, bars, or a function of (step, done, of).
    {options}

    Returns
    -------
    list of Reproduced

    Raises
    ------
    CairnError
        There is no such experiment, its set is missing, or one of its commands failed. Finished steps are kept.
    """
    from eval.papers.registry import chosen
    from eval.reproduce.plan import repeated
    from eval.reproduce.running import Bench
    from eval.reproduce.steps import Scale

    how = build(ReproduceOptions, options)
    selection = chosen([names] if isinstance(names, str) else list(names), Scale(how.scale))
    experiments = [repeated(one, how.seeds) for one in selection]
    folder = as_path(out, "out")
    bench = Bench(as_path(root, "root"), folder / "steps", how.workers)
    with telling(progress, {_STEP: "Commands"}) as tell:
        return list(
            run_experiments(experiments, bench, folder, how.scale, lambda one: tell(_STEP, one.done, one.of), _raise)
        )


def run_experiments(
    experiments: "Sequence[Experiment]",
    bench: "Bench",
    out: Path,
    scale: float,
    tell: "Callable[[Standing], None]",
    failed: "Callable[[Experiment, CairnError], None]",
    begin: "Callable[[Experiment], None]" = lambda experiment: None,
) -> Iterator[Reproduced]:
    """Run experiments in turn, and write their pages and the contents."""
    from pkgutil import resolve_name

    from eval.reproduce.log import LOG, append_log
    from eval.reproduce.pages import Outcome, check_pages, write_contents, write_outcome
    from eval.reproduce.running import run_steps

    check_pages(experiments)
    version = resolve_name("cairn:version")()
    outcomes = []
    for experiment in experiments:
        try:
            bench.check_data(experiment.data)
            begin(experiment)
            results = run_steps(bench, experiment.steps, tell, partial(append_log, out / LOG, experiment.name))
        except CairnError as error:
            failed(experiment, error)
            continue
        outcomes.append(Outcome(experiment, results, scale, version))
        page, result = write_outcome(outcomes[-1], bench, out), outcomes[-1].as_json()
        yield Reproduced(experiment.name, experiment.title, page, result["tables"], experiment.differs, result)
    write_contents(outcomes, out)


def _raise(experiment: "Experiment", error: CairnError) -> None:
    raise error
