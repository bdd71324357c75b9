"""Find the photos of a collection that show the same object or landmark, geometrically verified.

    import cairn

    with cairn.create("holiday.cairn", exist_ok=True) as collection:
        collection.add("Pictures/holiday", progress=True)
        answer = collection.search("church.jpg")

`PUBLIC` names all there is, and `cairn.testing` has what tests of extensions call. Each name is imported when it is
first used, and each command's module when the command runs: both `import cairn` and `cairn --help` answer at once.
"""

import atexit
import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

_ROOT = Path(__file__).resolve().parent
_GARBAGE = 20_000  # objects that are made until Python looks for garbage
_PACKAGES = ("index", "retrieval", "learning", "eval")  # each imports from those before it


def _refuse_strangers(package: str) -> None:
    """Raise ImportError if a package of Cairn, or one that it needs, is hidden by somebody else's module."""
    for name in _PACKAGES[: _PACKAGES.index(package) + 1]:
        found = find_spec(name)
        if found is not None and found.origin is not None and Path(found.origin).resolve().parent.parent != _ROOT:
            raise ImportError(
                f"Cairn's package {name!r} is hidden by {found.origin}: rename that, or start Python in another folder."
            )


if __name__ == "__main__" and not sys.flags.safe_path and Path(sys.path[0]).resolve() != _ROOT:
    # `python -m cairn` would look for Cairn's packages in the working folder first.
    del sys.path[0]
_refuse_strangers("retrieval")

from index.options.panels import EVERYDAY, HEALTH, LEARN, MEASURE  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Collection

    import typer


PUBLIC = {
    # Collections
    "open": "retrieval.library.opening:open",
    "create": "retrieval.library.opening:create",
    "check": "retrieval.library.health:check",
    "repair": "retrieval.library.health:repair",
    "Collection": "retrieval.library.collection:Collection",
    "Filter": "retrieval.catalogue.filters:PhotoFilter",
    "Near": "retrieval.metadata.places:Near",
    # Parts, on plain arrays
    "read_image": "retrieval.library.parts.images:read_image",
    "as_image": "retrieval.library.parts.images:as_image",
    "detect": "retrieval.library.parts.features:detect",
    "orientations": "retrieval.library.parts.features:orientations",
    "patches": "retrieval.library.parts.features:patches",
    "describe": "retrieval.library.parts.features:describe",
    "radii": "retrieval.library.parts.shapes:radii",
    "outlines": "retrieval.library.parts.shapes:outlines",
    "map_regions": "retrieval.library.parts.shapes:map_regions",
    "features_fingerprint": "retrieval.library.parts.features:features_fingerprint",
    "Descriptor": "retrieval.library.parts.descriptor:Descriptor",
    "Vocabulary": "retrieval.library.parts.vocabulary:Vocabulary",
    "Index": "retrieval.library.parts.scoring:Index",
    "nearest_matches": "retrieval.library.parts.matches:nearest_matches",
    "word_matches": "retrieval.library.parts.matches:word_matches",
    "verify": "retrieval.library.parts.matches:verify",
    "Verified": "retrieval.library.parts.matches:Verified",
    # Learning and measuring
    "mine": "learning.library.mining:mine",
    "Mined": "learning.library.mining:Mined",
    "learn_descriptor": "learning.library.descriptor:learn_descriptor",
    "NewDescriptor": "learning.library.new_descriptor:NewDescriptor",
    "learn_blocks": "learning.library.blocks:learn_blocks",
    "learn_boosted": "learning.library.boosted:learn_boosted",
    "learn_embedding": "learning.library.embedding:learn_embedding",
    "compress": "learning.library.compressing:compress",
    "learn_similarity": "learning.library.similarity:learn_similarity",
    "NewSimilarity": "learning.library.similarity:NewSimilarity",
    "evaluate_patches": "eval.library.patches:evaluate_patches",
    "evaluate_retrieval": "eval.library.retrieval:evaluate_retrieval",
    "evaluate_hpatches": "eval.library.hpatches:evaluate_hpatches",
    "HPatchesEvaluation": "eval.library.hpatches:HPatchesEvaluation",
    "reproduce": "eval.library.reproduce:reproduce",
    "Reproduced": "eval.library.reproduce:Reproduced",
    "PatchEvaluation": "eval.library.patches:PatchEvaluation",
    "RetrievalEvaluation": "eval.library.retrieval:RetrievalEvaluation",
    # Extensions
    "register": "index.extensions:register",
    "ExtensionMissing": "index.extensions:ExtensionMissing",
    # Results
    "Answer": "retrieval.library.answers:Answer",
    "Result": "retrieval.library.answers:Result",
    "Pairs": "retrieval.library.pairs:Pairs",
    "PhotoFeatures": "retrieval.library.pairs:PhotoFeatures",
    "Match": "retrieval.library.matches:Match",
    "Impressions": "retrieval.library.impressions:Impressions",
    "Impression": "retrieval.library.impressions:Impression",
    "ImpressionPair": "retrieval.library.impressions:ImpressionPair",
    "PrintClock": "retrieval.library.print_clock:PrintClock",
    "ClockReading": "retrieval.library.print_clock:ClockReading",
    "ClockDecisions": "retrieval.library.print_clock:ClockDecisions",
    "QueryPhoto": "retrieval.library.answers:QueryPhoto",
    "Photo": "retrieval.library.photos:Photo",
    "Photos": "retrieval.library.photos:Photos",
    "Group": "retrieval.library.groups:Group",
    "Groups": "retrieval.library.groups:Groups",
    "Added": "retrieval.library.reports:Added",
    "Info": "retrieval.library.reports:Info",
    "Removed": "retrieval.library.reports:Removed",
    "Root": "retrieval.indexing.roots:Root",
    "MovedRoot": "retrieval.indexing.roots:MovedRoot",
    "BackedUp": "retrieval.integrity.backup_files:BackedUp",
    "Compacted": "retrieval.indexing.compaction:Compacted",
    "Retrained": "retrieval.indexing.retraining:Retrained",
    "DescribedGlobally": "retrieval.indexing.describing:DescribedGlobally",
    "Check": "retrieval.integrity.report:Check",
    "Repaired": "retrieval.integrity.repair:Repaired",
    "Imported": "retrieval.library.reports:Imported",
    "Refreshed": "retrieval.catalogue.metadata_refresh:Refreshed",
    "Sidecars": "retrieval.catalogue.curation.sidecars:Sidecars",
    "Edited": "retrieval.curation.editing:Edited",
    "Album": "retrieval.library.reports:Album",
    "SharedAlbum": "retrieval.library.reports:SharedAlbum",
    "SavedSearch": "retrieval.library.reports:SavedSearch",
    "AskedSearch": "retrieval.library.reports:AskedSearch",
    "Occurrence": "retrieval.library.motifs:Occurrence",
    "SharedBooks": "retrieval.library.shared_books:SharedBooks",
    "BookPair": "retrieval.library.shared_books:BookPair",
    "SharedPage": "retrieval.library.shared_books:SharedPage",
    "Damage": "retrieval.integrity.report:Damage",
    # Errors
    "CairnError": "index.errors:CairnError",
    "CollectionNotFound": "retrieval.collection.collection:CollectionNotFound",
    "CollectionExists": "retrieval.library.opening:CollectionExists",
    "CollectionLocked": "retrieval.collection.locking:CollectionLocked",
    "CollectionChanged": "retrieval.collection.collection:CollectionChanged",
    "PhotoNotFound": "retrieval.catalogue.photo_lookup:PhotoNotFound",
    "PhotoUnusable": "retrieval.search.query:PhotoUnusable",
    "FeaturesNeeded": "retrieval.foreign.contract:FeaturesNeeded",
    "NotGrouped": "retrieval.groups.groups:NotGrouped",
    "Unreadable": "index.errors:Unreadable",
    "LaterVersion": "index.errors:LaterVersion",
}
"""Every public name, and where it is: module:object."""

__all__ = [*PUBLIC]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version()
    if name == "testing":
        from retrieval.library import testing

        return testing
    if name not in PUBLIC:
        raise AttributeError(f"module 'cairn' has no attribute {name!r}")
    _refuse_strangers(PUBLIC[name].partition(".")[0])
    found = globals()[name] = resolve_name(PUBLIC[name])
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC, "__version__", "testing"})


COMMANDS = {
    "index": ("retrieval.commands.collection:index", EVERYDAY),
    "query": ("retrieval.commands.query:query", EVERYDAY),
    "open": ("retrieval.web.shelf.open_command:open_collections", EVERYDAY),
    "serve": ("retrieval.web.serve_command:serve", EVERYDAY),
    "password": ("retrieval.web.access.commands:password", EVERYDAY),
    "token": ("retrieval.web.access.commands:token", EVERYDAY),
    "info": ("retrieval.commands.collection:info", EVERYDAY),
    "metadata": ("retrieval.commands.metadata:metadata", EVERYDAY),
    "edit": ("retrieval.commands.decisions:edit", EVERYDAY),
    "album": ("retrieval.commands.decisions:album", EVERYDAY),
    "hide": ("retrieval.commands.decisions:hide", EVERYDAY),
    "reject": ("retrieval.commands.decisions:reject", EVERYDAY),
    "group": ("retrieval.commands.groups:group", EVERYDAY),
    "global": ("retrieval.commands.global_descriptors:describe", EVERYDAY),
    "pairs": ("retrieval.commands.pairs:pairs", EVERYDAY),
    "annotations": ("retrieval.commands.annotations:annotations", EVERYDAY),
    "impressions": ("retrieval.commands.impressions:impressions", EVERYDAY),
    "searches": ("retrieval.commands.searches:searches", EVERYDAY),
    "books": ("retrieval.commands.books:books", EVERYDAY),
    "demo": ("eval.commands.evaluate:demo", EVERYDAY),
    "remove": ("retrieval.commands.care:remove", HEALTH),
    "roots": ("retrieval.commands.roots:roots", HEALTH),
    "compact": ("retrieval.commands.care:compact", HEALTH),
    "retrain": ("retrieval.commands.care:retrain", HEALTH),
    "check": ("retrieval.commands.integrity:check", HEALTH),
    "repair": ("retrieval.commands.integrity:repair", HEALTH),
    "backup": ("retrieval.commands.integrity:backup", HEALTH),
    "improve": ("learning.commands.improve:improve", LEARN),
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
        help="Find the photos that show the same object or landmark, geometrically verified.\n\n"
        "Without a command, on a terminal, your collections are opened in the web browser: see cairn open.",
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
        import index.opencv

        if "--environment" not in sys.argv:  # which reports it
            index.opencv.refuse_mixture()

    set_up(app)
    return app


def version() -> str:
    """Cairn's version: that of the installed package, or of this checkout if none is installed."""
    from importlib import metadata

    try:
        return metadata.version("cairn-search")
    except metadata.PackageNotFoundError:
        import tomllib

        project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project["version"])


def main() -> None:
    """Run the command line; what a user can cause ends with one sentence and exit code 2."""
    # Python would look for garbage hundreds of times while it imports, and through all of that when it ends: a quarter
    # of `cairn info`.
    gc.set_threshold(_GARBAGE)
    # Pydantic, which reads the arguments, would look through all installed packages for extensions of it.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    atexit.register(gc.freeze)
    try:
        from retrieval.commands.console import run

        # Without a word, somebody at a terminal wants to see their photos; a program has the help printed.
        arguments = sys.argv[1:] or (["open"] if sys.stdin.isatty() and sys.stdout.isatty() else [])
        # The modules of the other commands need not be imported then.
        names = arguments[:1] if COMMANDS.keys() & arguments[:1] else COMMANDS
        run(lambda **how: make_app(names)(arguments, prog_name="cairn", **how))
    except KeyboardInterrupt:  # before a command has begun
        sentence = "stopped; run the same command again to go on."
        print(f"cairn: {sentence}", file=sys.stderr)
        if "--json" in sys.argv:
            print(f'{{"error": "{sentence}"}}')
        sys.exit(130)


if __name__ == "__main__":
    main()
