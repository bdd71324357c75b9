"""What all commands share: how they begin, report, and fail."""

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import typer

from index.errors import CairnError

DONE, FAILED, WRONG, STOPPED = 0, 1, 2, 130
"""Exit codes: done; done but something asked for failed; the request was wrong; stopped by Ctrl-C."""


def run(app: Callable[..., Any]) -> None:
    """Run a command line, and turn a `CairnError`, or what the system refuses, into one sentence and exit code 2."""
    try:
        app()
    except CairnError as error:
        _refuse(str(error))
    except SystemExit as stop:
        if stop.code == STOPPED:  # Typer makes this of a KeyboardInterrupt
            print("cairn: stopped; run the same command again to go on.", file=sys.stderr)
        raise
    except BrokenProcessPool:
        _refuse(
            "A worker process was killed, most likely for want of memory: try fewer --workers; the same command goes "
            "on from here."
        )
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:  # a full disk, a folder that may not be written
        where = f"{error.filename}: " if error.filename is not None else ""
        _refuse(f"{where}{error.strerror or error}: check the disk, its space and its rights.")


def _refuse(sentence: str) -> None:
    print(f"cairn: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(WRONG)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(value, ensure_ascii=True))


def note(text: str) -> None:
    """Print a line for people on standard error: what they should know that is no answer and no progress."""
    print(f"cairn: {printable_name(' '.join(text.split()))}", file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Print a line for people on standard output, with nothing in it taken for markup."""
    from rich.console import Console

    Console(soft_wrap=True, highlight=False, markup=False).print(printable_name(text))


def printable_name(name: str) -> str:
    """Give a name with control characters escaped, so that it stays on its line and in its colours."""
    return "".join(
        character if character.isprintable() or character == " " else repr(character)[1:-1] for character in name
    )


@contextmanager
def progress_bars(quiet: bool, titles: dict[str, str]) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar a step on standard error, on a terminal only.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    titles : dict of str to str
        What each step is called.

    Yields
    ------
    callable
        To be called with a step, how much of it is done, and how much there is.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda step, done, of: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, Any] = {}

        def tell(step: str, done: int, of: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(titles.get(step, step), total=of)
            progress.update(tasks[step], completed=done, total=of)

        yield tell


Quiet = typer.Option(False, "--quiet", "-q", help="Show no progress.")
Json = typer.Option(False, "--json", help="Print one JSON object on standard output.")
