"""Common parts of the learning commands, such as `--as-published`: all of a paper's choices at once."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from index.options.panels import MODEL, OUTPUT, TUNING
from learning.library.published import Choices
from retrieval.commands.option_groups import given

AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        rich_help_panel=MODEL,
        help="Take all of the paper's choices, where Cairn's own differ; other options take precedence.",
    ),
]

PatchFolders = Annotated[
    list[Path], typer.Argument(help="Folders of labelled patches, as cairn patches build makes or as published.")
]
NewFile = Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Descriptor file (.npz) to write.")]

LearnAsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        rich_help_panel=TUNING,
        help="Learn as the paper does where that says how: no option has to be given for that, and one that is given "
        "wins.",
    ),
]


def published(choices: Choices) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command with a parameter `as_published`: options not set by the user take a paper's choices.

    `choices` takes the values of all options, and returns those of the paper by the parameters' names, or raises a
    CairnError if the user's options contradict the paper.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)

        @wraps(command)
        def mounted(context: typer.Context, **values: Any) -> None:
            if values["as_published"]:
                of_user = given(context)
                values |= {name: value for name, value in choices(values).items() if name not in of_user}
            command(**values)

        first = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        others = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()]
        mounted.__signature__ = signature.replace(parameters=[first, *others])  # type: ignore[attr-defined]
        mounted.__annotations__ = {one.name: one.annotation for one in (first, *others)}
        return mounted

    return decorate
