"""What --help prints: a page that fits the terminal, with commands and options in panels."""

import inspect
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from index.options.panels import OUTPUT

_WIDEST_NAME = 30
_WIDEST_PAGE = 110


def pages(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command and group with its words on the command line, the application itself first."""
    yield ("cairn", *path), command
    for name, one in getattr(command, "commands", {}).items():
        yield from pages(one, *path, name)


def print_help(command: Any, context: Any) -> None:
    """Print the help of a command or a group on standard output."""
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST_PAGE)
    parameters = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    commands = [command.get_command(context, name) for name in getattr(command, "commands", {})]
    options = [one for one in parameters if one.param_type_name == "option"]
    pieces = [context.command_path, "[OPTIONS]", *(argument_name(one) for one in arguments)]
    pieces += [option_name(one).plain for one in options if one.required]
    console.print()
    console.print(Text(" ".join(["Usage:", *pieces, *["COMMAND [ARGUMENTS]..."] * bool(commands)]), "bold"))
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        console.print()
        console.print(Text(" ".join(paragraph.split())))
    console.print()
    panels: dict[str, list[tuple[Text, Text]]] = {}
    for one in commands:
        title = one.rich_help_panel or "Commands"
        panels.setdefault(title, []).append((Text(one.name, "bold cyan"), Text(first_paragraph(one))))
    for one in arguments:
        panels.setdefault("Arguments", []).append((Text(argument_name(one), "bold cyan"), explanation(one)))
    titles = [getattr(one, "rich_help_panel", None) or "Options" for one in options]
    if OUTPUT in titles:
        titles = [OUTPUT if one.name == "help" else title for one, title in zip(options, titles, strict=True)]
    for title in sorted(dict.fromkeys(titles), key=lambda title: (title == OUTPUT) - (title == "Options")):
        rows = [(one, of) for one, of in zip(options, titles, strict=True) if of == title]
        panels[title] = [(option_name(one), explanation(one)) for one, _ in rows]
    of_commands = {title: rows for title, rows in panels.items() if title not in titles}
    for part in (of_commands, {title: rows for title, rows in panels.items() if title in titles}):
        _print_panels(console, part)


def _print_panels(console: Console, panels: dict[str, list[tuple[Text, Text]]]) -> None:
    """Print panels whose left columns are equally wide."""
    widest = max((len(name) for rows in panels.values() for name, _ in rows), default=0)
    for title, rows in panels.items():
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(width=min(widest, _WIDEST_NAME))
        table.add_column(ratio=1)
        for row in rows:
            table.add_row(*row)
        console.print(Panel(table, title=title, title_align="left", border_style="dim"))


def argument_name(one: Any) -> str:
    """Return an argument as shown in the usage: in brackets if it is optional."""
    name = str(one.metavar or one.name.upper())
    name = name if one.nargs == 1 else f"{name}..."
    return name if one.required or name.startswith("[") else f"[{name}]"


def option_name(one: Any) -> Text:
    """Return an option's names and the name of its value."""
    names = ", ".join(sorted(one.opts, key=len))
    names = "/".join([names, *one.secondary_opts])
    named = Text(names, "bold cyan")
    if not one.is_flag:
        named.append(f" {one.metavar or 'VALUE'}", "not bold yellow")
    return named


def explanation(one: Any) -> Text:
    """Return the help of a parameter, with its default."""
    text = Text(one.help or "")
    default = _default(one)
    if one.required and one.param_type_name == "option":
        text.append(" (required)", "red")
    elif default and "default" not in text.plain:
        text.append(f" (default: {default})", "dim")
    return text


def _default(one: Any) -> str:
    value = one.default
    if getattr(one, "secondary_opts", None) and value is not None:
        return str((one.opts if value else one.secondary_opts)[0]).lstrip("-")
    if value is None or value is False or value == "" or callable(value):
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 and "seed" not in one.name else str(value)


def first_paragraph(command: Any) -> str:
    """Return the summary of a command, on one line."""
    text = command.short_help or inspect.cleandoc(command.help or "").split("\n\n")[0]
    return " ".join(text.split())
