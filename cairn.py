"""The `cairn` command: mounts what each package offers.

A command's module, and all it needs, is imported when the command runs: `cairn --help` answers at once.
"""

import atexit
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    from collections.abc import Callable

    import typer


def make_app() -> "typer.Typer":
    """Make the command line; here, and not above, so that Ctrl-C may come while it is imported."""
    import typer

    from eval.commands.evaluate import demo, evaluate
    from eval.commands.plot import plot
    from learning.commands.compress import compress
    from learning.commands.descriptor import learn
    from learning.commands.mine import mine
    from learning.commands.patches import patches
    from retrieval.commands.care import compact, remove, retrain
    from retrieval.commands.collection import index, info, query
    from retrieval.commands.command_line import set_up
    from retrieval.commands.groups import group
    from retrieval.commands.integrity import check, repair
    from retrieval.commands.metadata import metadata
    from retrieval.commands.panels import EVERYDAY, HEALTH, LEARN, MEASURE
    from retrieval.web.serve_command import serve

    app = typer.Typer(
        name="cairn",
        help="Find the photos that show the same object or landmark, geometrically verified.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    command: Callable[..., None]
    for command in (index, query, serve, info, metadata, group, demo):
        app.command(rich_help_panel=EVERYDAY)(command)
    for command in (remove, compact, retrain, check, repair):
        app.command(rich_help_panel=HEALTH)(command)
    app.add_typer(learn, name="learn", rich_help_panel=LEARN)
    app.command(rich_help_panel=LEARN)(mine)
    app.command(rich_help_panel=LEARN)(compress)
    app.add_typer(patches, name="patches", rich_help_panel=LEARN)
    app.add_typer(evaluate, name="evaluate", rich_help_panel=MEASURE)
    app.add_typer(plot, name="plot", rich_help_panel=MEASURE)

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

        run(lambda **how: make_app()(**how))
    except KeyboardInterrupt:  # before a command has begun
        sentence = "stopped; run the same command again to go on."
        print(f"cairn: {sentence}", file=sys.stderr)
        if "--json" in sys.argv:
            print(f'{{"error": "{sentence}"}}')
        sys.exit(130)


if __name__ == "__main__":
    main()
