"""`--as-published`: all of a paper's choices at once, under those that the command line names itself."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

from index.options.panels import MODEL, TUNING
from learning.library.published import Choices
from retrieval.commands.option_groups import given

AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        rich_help_panel=MODEL,
        help="Take all of the paper's choices, where Cairn's own differ; an option given beside it wins.",
    ),
]

LearnAsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        rich_help_panel=TUNING,
        help="Learn as the paper does where that says how: no option has to be given for that, and one that is given "
        "wins.",
    ),
]

BROWN11 = "Brown11"
TRZCINSKI12 = "Trzcinski12"


def published(choices: Choices) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command with a parameter `as_published` take a paper's choices for options that were not given.

    Parameters
    ----------
    choices : callable
        Told the values of all options, gives those of the paper by the parameters' names. It may raise a CairnError
        where what was given contradicts the paper.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)

        @wraps(command)
        def mounted(context: typer.Context, **values: Any) -> None:
            if values["as_published"]:
                said = given(context)
                values |= {name: value for name, value in choices(values).items() if name not in said}
            command(**values)

        first = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        others = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()]
        mounted.__signature__ = signature.replace(parameters=[first, *others])  # type: ignore[attr-defined]
        mounted.__annotations__ = {one.name: one.annotation for one in (first, *others)}
        return mounted

    return decorate


def of_blocks(values: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of Brown11; Powell's method ends where the area hardly changes (section IV), not after so many."""
    return {"centre": False, "patch_size": 64, **({"evaluations": 10_000} if values["powell"] else {})}


def of_boosting(values: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of Trzcinski12; `usual_comparison` has another one."""
    found: dict[str, Any] = {
        "offset": False,
        "positive": False,
        "form": "inner",
        "keep": "eigenvalues",
        "scale": 1.0,
        "step": 0.005,
    }
    if values["start"] is None:
        found |= {"learners": 512, "smoothing": 0.0, "patch_size": 64}
        if values["kind"] != "ssc":
            found |= {"orientations": 24, "floor": 0.001}
    return found


def usual_comparison(kind: str, form: str, keep: str, *, as_published: bool) -> str:
    """How boosted descriptors are compared where that is not said: as in the paper where all that leads to it is."""
    signed = kind in ("lbgm", "lbgm-diag") and (form, keep) == ("inner", "eigenvalues")
    return "inner" if as_published and signed else "distance"
