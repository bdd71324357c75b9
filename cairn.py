"""The `cairn` command: mounts what each package offers.

A command's module, and all it needs, is imported when the command runs: `cairn --help` answers at once.
"""

import atexit
import gc
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated

from retrieval.commands.panels import EVERYDAY, HEALTH, LEARN, MEASURE

if TYPE_CHECKING:
    from collections.abc import Collection

    import typer


COMMANDS = {
    "index": ("retrieval.commands.collection:index", EVERYDAY),
    "query": ("retrieval.commands.collection:query", EVERYDAY),
    "serve": ("retrieval.web.serve_command:serve", EVERYDAY),
    "info": ("retrieval.commands.collection:info", EVERYDAY),
    "metadata": ("retrieval.commands.metadata:metadata", EVERYDAY),
    "group": ("retrieval.commands.groups:group", EVERYDAY),
    "demo": ("eval.commands.evaluate:demo", EVERYDAY),
    "remove": ("retrieval.commands.care:remove", HEALTH),
    "compact": ("retrieval.commands.care:compact", HEALTH),
    "retrain": ("retrieval.commands.care:retrain", HEALTH),
    "check": ("retrieval.commands.integrity:check", HEALTH),
    "repair": ("retrieval.commands.integrity:repair", HEALTH),
    "learn": ("learning.commands.descriptor:learn", LEARN),
    "mine": ("learning.commands.mine:mine", LEARN),
    "compress": ("learning.commands.compress:compress", LEARN),
    "patches": ("learning.commands.patches:patches", LEARN),
    "data": ("eval.commands.data:data", MEASURE),
    "evaluate": ("eval.commands.evaluate:evaluate", MEASURE),
    "plot": ("eval.commands.plot:plot", MEASURE),
    "reproduce": ("eval.commands.reproduce:reproduce", MEASURE),
}
"""Every command by its name: module:object, a function or a Typer application, and its panel; in the help's order."""


def make_app(names: "Collection[str]" = COMMANDS) -> "typer.Typer":
    """Make the command line of some commands; here, and not above, so that Ctrl-C may come while it is imported."""
    import typer

    from retrieval.commands.command_line import set_up

    app = typer.Typer(
        name="cairn",
        help="Find the photos that show the same object or landmark, geometrically verified.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for name, (place, panel) in COMMANDS.items():
        if name in names:
            command = resolve_name(place)
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel)(command)

    def tell_version(context: typer.Context, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:  # not while a shell completes the line
            print(f"cairn {version()}")
            raise typer.Exit()

    @app.callback()
    def options(
        version: Annotated[
            bool,
            typer.Option("--version", callback=tell_version, is_eager=True, help="Print Cairn's version and exit."),
        ] = False,
    ) -> None:
        pass

    set_up(app)
    return app


def version() -> str:
    """Cairn's version: that of the installed package, or of this checkout where none is installed."""
    from importlib import metadata

    try:
        return metadata.version("cairn-search")
    except metadata.PackageNotFoundError:
        import tomllib

        project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project["version"])


def main() -> None:
    """Run the command line; what a user can cause ends with one sentence and exit code 2."""
    # Python would look through all that was imported for garbage when it ends: a sixth of `cairn info`.
    atexit.register(gc.freeze)
    try:
        from retrieval.commands.console import run

        # The modules of the other commands need not be imported then.
        names = sys.argv[1:2] if COMMANDS.keys() & sys.argv[1:2] else COMMANDS
        run(lambda **how: make_app(names)(**how))
    except KeyboardInterrupt:  # before a command has begun
        sentence = "stopped; run the same command again to go on."
        print(f"cairn: {sentence}", file=sys.stderr)
        if "--json" in sys.argv:
            print(f'{{"error": "{sentence}"}}')
        sys.exit(130)


if __name__ == "__main__":
    main()
