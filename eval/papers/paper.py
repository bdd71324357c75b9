"""What makes functions of a paper's module its experiments."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from eval.reproduce.plan import Cell, Experiment, Part, Table
from eval.reproduce.steps import Scale

Parts: TypeAlias = Part | Sequence[Part]
"""What an experiment's page shows: one or several."""
Maker: TypeAlias = Callable[[Scale], Experiment]

EXPERIMENTS: dict[str, Maker] = {}
"""All experiments by their names, as their modules have them."""


def of_paper(paper: str, source: str) -> Callable[..., Callable[[Callable[[Scale], Parts]], Maker]]:
    """Decorator of functions that give the parts of an experiment, and whose docstring is its title.

    It takes where the paper has it, where this differs, and `notes`.
    """

    def experiment(
        where: str, *differs: str, notes: tuple[str, ...] = ()
    ) -> Callable[[Callable[[Scale], Parts]], Maker]:
        def decorate(parts: Callable[[Scale], Parts]) -> Maker:
            name, title = f"{paper}/{parts.__name__.replace('_', '-')}", str(parts.__doc__).removesuffix(".")

            def make(scale: Scale) -> Experiment:
                made = parts(scale)
                whole = tuple(made) if isinstance(made, Sequence) else (made,)
                return Experiment(name, title, f"{source}{where}", whole, differs, notes)

            EXPERIMENTS[name] = make
            return make

        return decorate

    return experiment


def table_of_map(cells: Sequence[Cell]) -> Table:
    """A table of mean average precision."""
    return Table("mAP", "Mean average precision", tuple(cells), digits=3, better="higher")
