"""Commands: index, info."""

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from index.errors import CairnError
from index.options.declaration import build, chosen, options_of, values_of
from index.options.panels import IIIF, OUTPUT, WATCH
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import FAILED, print_json, say, tell_error
from retrieval.commands.described import FeatureFiles, make_collection
from retrieval.commands.option_groups import OptionsOf, given, grouped, option_flag
from retrieval.commands.options import CatalogueAddress, ClusterAddress, Json, Quiet, ReadOptions, StoragePlace, Workers
from retrieval.commands.printing import print_environment, print_facts, report_index
from retrieval.iiif.options import FetchOptions
from retrieval.indexing.add_options import AddOptions

if TYPE_CHECKING:
    from retrieval.collection.collection import Collection as Opened
    from retrieval.iiif.fetching import Fetcher
    from retrieval.library.cluster import ClusterWork
    from retrieval.library.reports import Added


@dataclass(frozen=True)
class Sources:
    """What is indexed, as arguments of the command line."""

    photos: Annotated[
        list[str] | None,
        typer.Argument(
            help="Photos, folders of photos, and addresses (https://…) of IIIF manifests, IIIF collections and IIIF "
            "change streams."
        ),
    ] = None
    manifests: Annotated[
        Path | None,
        typer.Option(
            "--manifests",
            rich_help_panel=IIIF,
            metavar="FILE",
            help="Text file with addresses of IIIF manifests and IIIF collections, one per line, whose pages are "
            "fetched.",
            show_default=False,
        ),
    ] = None
    below: Annotated[
        list[Path] | None,
        typer.Option(
            "--below",
            metavar="FOLDER",
            help="Index only photos that are really in this folder, whatever links to other places it contains; may be "
            "repeated (default: all).",
            show_default=False,
        ),
    ] = None

    def sorted_out(self) -> tuple[list[Path], list[str]]:
        """Paths of photos and folders, and addresses."""
        from retrieval.iiif.addresses import is_address
        from retrieval.library.manifests import read_addresses

        addresses = [one for one in self.photos or () if is_address(one)]
        if self.manifests is not None:
            addresses += read_addresses(self.manifests)
        return [Path(one) for one in self.photos or () if not is_address(one)], addresses


@dataclass(frozen=True)
class Watching:
    """When to index, as options of the command line."""

    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="MINUTES",
            help="Start no further photo after so many minutes, counted from the moment when the new photos are known; "
            "the same command continues where this one stopped.",
        ),
    ] = None
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            rich_help_panel=WATCH,
            help="Keep running until Ctrl-C, and index whenever photos are added, changed or removed.",
        ),
    ] = False
    every: Annotated[
        float,
        typer.Option(
            rich_help_panel=WATCH,
            metavar="SECONDS",
            help="With --watch, also look for changes every so many seconds, because not all drives report them.",
            min=1,
        ),
    ] = 600

    @property
    def seconds(self) -> float | None:
        """The time limit in seconds."""
        return 60 * self.time_limit if self.time_limit is not None else None

    def check(self, again: bool, addresses: list[str]) -> None:
        """Raise CairnError for options that do not go together."""
        if self.watch and again:
            raise CairnError("--again cannot be used with --watch: add the photos first, then watch.")
        if self.watch and self.time_limit is not None:
            raise CairnError("--time-limit cannot be used with --watch, which runs until Ctrl-C.")
        if self.time_limit is not None and not self.time_limit > 0:
            raise CairnError(f"--time-limit must be more than 0 minutes, not {self.time_limit:g}.")
        if self.watch and addresses:
            raise CairnError(
                "--watch cannot be used with addresses: to fetch a manifest again, run the same command again."
            )


@dataclass(frozen=True)
class Running:
    """Where the work is done, and what is printed, as options of the command line."""

    workers: Workers = 0
    cluster: ClusterAddress = None
    storage: StoragePlace = None
    catalogue: CatalogueAddress = None
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", rich_help_panel=OUTPUT, help="Exit with code 1 if any photo failed or was not fetched."
        ),
    ] = False
    quiet: bool = Quiet
    json: bool = Json


@grouped
def index(
    context: typer.Context,
    collection: Annotated[Path, typer.Argument(help="Folder of the collection; created if it does not exist.")],
    files: FeatureFiles,
    options: Annotated[dict[str, Any], OptionsOf(CollectionOptions)],
    adding: Annotated[dict[str, Any], OptionsOf(AddOptions, FetchOptions, leave=("time_limit",))],
    sources: Sources,
    when: Watching,
    running: Running,
) -> None:
    """Create a collection from photos, or add photos to an existing one.

    Photos that the collection already holds are skipped if they are unchanged, and recognised if they were moved.
    Photos whose files are gone are marked as missing, and stay until cairn remove --missing. Damaged photos are
    reported once, with the reason; cairn info lists all of them. Photos that were removed for good stay out, unless
    --again finds them, which also takes them off that list. To continue an interrupted run, run the same command again.
    Options that shape the collection (descriptor, words, max-side, max-features, detector) only take effect when it is
    created; a later run with other values says so. With --watch and --json, each run that finds something prints one
    JSON object on a line of its own. With --features, keypoints and descriptors come from another program; photos
    without any are reported as failed. Pages of IIIF manifests are fetched at the size that indexing needs; a second
    run only asks for what has changed.
    """
    from index.parallel import keep_memory
    from retrieval.library.cluster import joined
    from retrieval.library.collection import Collection

    files.check(context)
    fetching = chosen(FetchOptions, adding)
    paths, addresses = sources.sorted_out()
    when.check(adding["again"], addresses)
    if not addresses and fetching != FetchOptions():
        raise CairnError(
            "--iiif-folder, --allow-host, --ignore-robots and --check-pictures need the address of a manifest."
        )
    if not paths and not addresses:
        paths = _removed_for_good(collection, running.catalogue) if adding["again"] else []
    if not paths and not addresses:
        raise CairnError("Say what to index: photos, folders of photos, or the address of an IIIF manifest.")
    if adding["vocabulary"] is not None and not adding["vocabulary"].exists():
        raise CairnError(f"There is no collection or vocabulary {str(adding['vocabulary'])!r}; check the name.")
    fetcher = _fetcher(collection, paths, addresses, fetching)
    wanted = build(CollectionOptions, options)
    keep_memory()
    with joined(running.cluster, storage=running.storage) as work:
        opened = _opened(context, collection, files, wanted, paths, running.catalogue, work)
        if sources.below is not None:
            opened = replace(opened, below=tuple(sources.below))
        made = Collection(opened, work, fetcher)

        def run() -> "Added":
            return made.add(
                [*paths, *addresses],
                workers=running.workers,
                time_limit=when.seconds,
                **adding,
                progress=not (running.quiet or running.json),
            )

        if when.watch:
            _keep_indexing(collection, paths, run, when.every, running.json)
            return
        report = run()
    report_index(collection, report, running.json)
    not_fetched = any(one["failed"] or one["reason"] for one in report.manifests)
    if (report.failed or not_fetched) and (running.strict or not report.images):
        raise typer.Exit(FAILED)


def _fetcher(collection: Path, paths: list[Path], addresses: list[str], options: FetchOptions) -> "Fetcher | None":
    """What asks other hosts, if there are addresses. Before a collection is created, raises CairnError if a path is
    missing, or no address can be fetched.
    """
    from retrieval.collection.layout import OPTIONS
    from retrieval.library.manifests import check_addresses, open_fetcher
    from retrieval.photos.listing import list_photos

    fetcher = open_fetcher(options) if addresses else None
    if not (collection / OPTIONS).is_file():
        list_photos([path for path in paths if not path.exists()])
        if fetcher is not None:
            check_addresses(addresses, fetcher)
    return fetcher


def _opened(
    context: typer.Context,
    collection: Path,
    files: FeatureFiles,
    wanted: CollectionOptions,
    paths: list[Path],
    catalogue: str | None,
    work: "ClusterWork | None",
) -> "Opened":
    """The collection, which is created if it does not exist; warns about options that have no effect."""
    from retrieval.collection.layout import OPTIONS
    from retrieval.library.opening import open_named

    names = given(context, *options_of(CollectionOptions))
    if files.features is None and (collection / OPTIONS).is_file() and not names:
        # With its own options, even before its first photo.
        return open_named(collection, catalogue=catalogue, cluster=work).opened
    opened = make_collection(collection, wanted, files, paths, catalogue, work).opened
    _tell_unused(context, names, opened, wanted)
    if given(context, "max_pixels"):  # a limit of this run only, as for workers of a cluster or a server
        image = replace(opened.options.image, max_pixels=wanted.image.max_pixels)
        return replace(opened, options=replace(opened.options, image=image))
    return opened


def _removed_for_good(folder: Path, address: str | None) -> list[Path]:
    """Existing files of the photos that were removed for good; raises CairnError if there are none."""
    import os

    from retrieval.catalogue.exclusions import exclusions_in
    from retrieval.collection.collection import Collection
    from retrieval.metadata.pages import file_of

    with Collection.open(folder, catalogue=address) as collection:
        excluded = collection.catalogue.read(exclusions_in)
    if not excluded:
        raise CairnError(f"No photo was removed for good from {folder}: name photos, or folders of photos.")
    files = dict.fromkeys(file_of(one.path) for one in excluded)
    existing = [file for file in files if os.path.isfile(file)]  # noqa: PTH113 (hides errors)
    if not existing:
        raise CairnError(
            f"The photos that were removed for good from {folder} are no longer where they were: name the folder where "
            "they are now."
        )
    return existing


def _tell_unused(context: typer.Context, names: list[str], collection: Any, wanted: CollectionOptions) -> None:
    """Warn about given options that have no effect because the collection was made with others."""
    from index.hamming.kinds import parse_signature
    from retrieval.descriptors.registry import find_descriptor, model_file

    wanted = wanted.with_extensions()
    values, own = values_of(wanted), values_of(collection.options)
    is_other = {name: values[name] != own[name] for name in names} | {
        "signature": parse_signature(wanted.signature) != collection.signature,
        # Another learnt descriptor was already refused.
        "descriptor": model_file(wanted.descriptor) is None
        and find_descriptor(wanted.descriptor).fingerprint != collection.extractor.descriptor.fingerprint,
    }
    unused = [option_flag(context, name) for name in names if is_other[name] and name != "max_pixels"]
    if unused:
        print(
            f"cairn: {collection.folder} was made with other options, so these do not count: {', '.join(unused)}.",
            file=sys.stderr,
            flush=True,
        )


def _keep_indexing(folder: Path, photos: list[Path], run: "Callable[[], Added]", every: float, json: bool) -> None:
    """Index whenever photos have changed, until Ctrl-C; errors are reported, and the next change is tried."""
    from retrieval.photos.watching import WatchOptions, changes

    if not json:
        say(f"{folder}: watching; Ctrl-C ends it.")
    known_failures = None
    with contextlib.suppress(KeyboardInterrupt):
        for _ in changes(photos, folder, WatchOptions(every=every)):
            try:
                report = _when_free(run)
            except CairnError as error:
                tell_error(str(error))
                continue
            failures = {(entry["path"], entry["reason"]) for entry in report.failed}
            has_changes = report.added or report.reread or report.back or report.moved or report.vanished
            if has_changes or failures != known_failures:
                report_index(folder, report, json)
            known_failures = failures


def _when_free(run: "Callable[[], Added]") -> "Added":
    """Run as soon as no other process is changing the collection."""
    from retrieval.collection.locking import CollectionLocked

    while True:
        try:
            return run()
        except CollectionLocked:
            time.sleep(1)


@grouped
def info(
    *,
    context: typer.Context,
    collection: Annotated[Path | None, typer.Argument(help="Folder of the collection.")] = None,
    environment: Annotated[
        bool,
        typer.Option(
            "--environment",
            help="Describe the installation and the machine instead, for a bug report; COLLECTION may be left out.",
        ),
    ] = False,
    run: ReadOptions,
) -> None:
    """Show what a collection contains, and how many bytes each feature takes.

    With --environment, print what a bug report needs: versions, the processor and the code that libraries run on it,
    threads, environment variables, and where compiled functions and pictures are stored. No value that may be secret is
    printed.
    """
    if environment:
        from retrieval.library.environment import describe_environment

        described = describe_environment(collection).to_dict()
        if run.json:
            print_json(described)
        else:
            print_environment(described)
        return

    if collection is None:
        context.fail("Missing argument 'COLLECTION'")
    with run.open(collection) as opened:
        facts = opened.info().to_dict()
    if run.json:
        print_json(facts)
        return
    print_facts(collection, facts)
