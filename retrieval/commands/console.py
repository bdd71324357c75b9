"""How all commands begin, report, and fail."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import typer

from index.errors import CairnError
from index.files.names import CACHE_VARIABLE
from index.kernels.waiting import tell_of_compiling
from index.messages import Message, on_command_line, speaking
from index.parallel import Terminated, stopping_in_order
from index.text import printable_name
from retrieval.library.progress import progress_bars as progress_bars
from retrieval.library.progress import progress_descriptor

DONE, FAILED, WRONG, STOPPED, TERMINATED = 0, 1, 2, 130, 143
"""Exit codes: done; done but something asked for failed; the request was wrong; stopped by Ctrl-C; by SIGTERM."""


_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]  # Typer has no public name for it


def run(app: Callable[..., Any]) -> None:
    """Run a command line, turn a CairnError into one sentence on standard error and exit code 2, and exit.

    With --json among the arguments the sentence is an object on standard output too, ``{"error": SENTENCE, "kind":
    EXCEPTION}``. However the command ends, it leaves no worker process running.
    """
    tell_of_compiling(_note_compiling)
    try:
        with speaking(on_command_line), stopping_in_order():
            code = app(standalone_mode=False)
        if code == STOPPED:  # Typer makes this of a KeyboardInterrupt
            _end("stopped; run the same command again to go on.", STOPPED)
        sys.exit(code or DONE)
    except Terminated:
        _end("told to stop (SIGTERM); run the same command again to go on.", TERMINATED)
    except CairnError as error:
        _end(error.message, WRONG, type(error).__name__)
    except _USAGE_ERROR as error:
        _refuse_usage(error)
    except RuntimeError as error:
        from concurrent.futures.process import BrokenProcessPool  # here: it takes a tenth of `cairn --help`

        if not isinstance(error, BrokenProcessPool):
            raise
        _refuse(
            "A worker process was killed, most likely because there was not enough memory: try fewer --workers; the "
            "same command goes on from here."
        )
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:  # a full disk, a folder that may not be written
        where = f"{error.filename}: " if error.filename is not None else ""
        _refuse(f"{where}{error.strerror or error}: check the disk, its free space and its permissions.")


def _note_compiling() -> None:
    """Say why this run takes longer than later ones, or what to do about it."""
    from index.kernels.keeping import cache_folder

    if cache_folder() is not None:
        note("Compiling functions for this processor, once; that takes up to half a minute.")
    else:
        note(
            "Compiling functions for this processor, as every command does that finds no folder to keep them in; that "
            f"takes up to half a minute. Let the variable {CACHE_VARIABLE} name one that can be written to."
        )


def _refuse(sentence: str) -> NoReturn:
    _end(sentence, WRONG)


def _refuse_usage(error: Any) -> NoReturn:
    """Report wrong arguments, and refer to the help."""
    if type(error).__name__ == "NoArgsIsHelpError":  # it has printed the help
        sys.exit(WRONG)
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "cairn"
    message = " ".join(error.format_message().split()).rstrip(".")
    _refuse(f"{message}{' See' if message.endswith('?') else '; see'} {command} --help.")


def _end(message: str | Message, code: int, kind: str | None = None) -> NoReturn:
    tell_error(message, kind)
    sys.exit(code)


def tell_error(message: str | Message, kind: str | None = None) -> None:
    """Print an error on standard error, and with --json as an object, with the exception's name, on standard output. A
    server that runs the command gets the message, too, which it translates.
    """
    sentence = " ".join((message.sentence(on_command_line) if isinstance(message, Message) else message).split())
    print(f"cairn: {sentence}", file=sys.stderr, flush=True)
    if _json_is_wanted():
        record: dict[str, Any] = {"error": sentence} | ({"kind": kind} if kind is not None else {})
        if isinstance(message, Message) and progress_descriptor() is not None:
            record["message"] = message.to_dict()
        print_json(record)


def _json_is_wanted() -> bool:
    """Whether --json is among the arguments, even if these are wrong."""
    arguments = sys.argv[1:]
    if "--" in arguments:
        arguments = arguments[: arguments.index("--")]
    return "--json" in (argument.partition("=")[0] for argument in arguments)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(value, ensure_ascii=True))


def note(text: str) -> None:
    """Print a notice for people on standard error."""
    print(f"cairn: {printable_name(' '.join(text.split()))}", file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Print a line for people on standard output."""
    print(printable_name(text), flush=True)


def first_of(lines: Sequence[str], most: int, indent: str = "") -> Sequence[str]:
    """Return the first lines for people, and how many more there are."""
    if len(lines) <= most:
        return lines
    return [*lines[:most], f"{indent}… and {len(lines) - most} more; --json lists them all."]


def print_failures(failed: list[dict[str, str]]) -> None:
    """List photos that could not be used."""
    for entry in failed:
        say(f"failed: {printable_name(entry['path'])}: {entry['reason']}")
