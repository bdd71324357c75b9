"""Decorator that registers functions of a paper's module as experiments."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from eval.reproduce.plan import Cell, Experiment, Part, Table
from eval.reproduce.steps import Scale

Parts: TypeAlias = Part | Sequence[Part]
"""Parts of an experiment's page: one or several."""
Maker: TypeAlias = Callable[[Scale], Experiment]

EXPERIMENTS: dict[str, Maker] = {}
"""All experiments by name, registered by their modules."""


def of_paper(paper: str, source: str) -> Callable[..., Callable[[Callable[[Scale], Parts]], Maker]]:
    """Decorator, with place, differences and `notes`, of functions that return an experiment; the docstring is its
    title.
    """

    def experiment(
        where: str, *differs: str, notes: tuple[str, ...] = ()
    ) -> Callable[[Callable[[Scale], Parts]], Maker]:
        def decorate(parts: Callable[[Scale], Parts]) -> Maker:
            name, title = f"{paper}/{parts.__name__.replace('_', '-')}", str(parts.__doc__).removesuffix(".")

            def make(scale: Scale) -> Experiment:
                experiment_parts = parts(scale)
                whole = tuple(experiment_parts) if isinstance(experiment_parts, Sequence) else (experiment_parts,)
                return Experiment(name, title, f"{source}{where}", whole, differs, notes)

            EXPERIMENTS[name] = make
            return make

        return decorate

    return experiment


def table_of_map(cells: Sequence[Cell]) -> Table:
    """A table of mean average precision."""
    return Table("mAP", "Mean average precision", tuple(cells), digits=3, better="higher")
