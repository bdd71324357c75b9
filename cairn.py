"""The `cairn` command: mounts what each package offers.

A command's module, and all it needs, is imported when the command runs: `cairn --help` answers at once.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def make_app() -> "typer.Typer":
    """Make the command line; here, and not above, so that Ctrl-C may come while it is imported."""
    import typer

    from eval.commands import demo, evaluate
    from eval.plot_commands import plot
    from learning.commands import learn
    from learning.compress_commands import compress
    from learning.mine_commands import mine
    from learning.patch_commands import patches
    from retrieval.care_commands import compact, remove, retrain
    from retrieval.command_line import set_up
    from retrieval.commands import index, info, query
    from retrieval.group_commands import group
    from retrieval.integrity_commands import check, repair
    from retrieval.metadata_commands import metadata
    from retrieval.web.serve_commands import serve

    app = typer.Typer(
        name="cairn",
        help="Find the photos that show the same object or landmark, geometrically verified.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.command()(index)
    app.command()(query)
    app.command()(info)
    app.command()(remove)
    app.command()(compact)
    app.command()(retrain)
    app.command()(check)
    app.command()(repair)
    app.command()(metadata)
    app.command()(group)
    app.command()(serve)
    app.command()(mine)
    app.add_typer(learn, name="learn")
    app.command()(compress)
    app.add_typer(patches, name="patches")
    app.add_typer(evaluate, name="evaluate")
    app.add_typer(plot, name="plot")
    app.command()(demo)
    set_up(app)
    return app


def main() -> None:
    """Run the command line; what a user can cause ends with one sentence and exit code 2."""
    try:
        from retrieval.console import run

        run(lambda **how: make_app()(**how))
    except KeyboardInterrupt:  # before a command has begun
        sentence = "stopped; run the same command again to go on."
        print(f"cairn: {sentence}", file=sys.stderr)
        if "--json" in sys.argv:
            print(f'{{"error": "{sentence}"}}')
        sys.exit(130)


if __name__ == "__main__":
    main()
