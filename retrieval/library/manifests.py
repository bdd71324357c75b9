"""Pages of IIIF manifests, fetched into a folder of photos."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.attributes import some_of
from index.errors import CairnError
from index.messages import Message
from index.progress import Progress
from retrieval.iiif.options import FetchOptions

if TYPE_CHECKING:
    from retrieval.collection.collection import Collection
    from retrieval.iiif.changes import ChangeStream
    from retrieval.iiif.downloads import ManifestDownload
    from retrieval.iiif.fetching import Fetcher

FOLDER = "iiif"
"""Folder of downloads within the uploads of a collection."""

_LONGEST_LIST = 16 << 20  # bytes


@dataclass(frozen=True)
class FetchedPages:
    """Result of fetching manifests: the folder to index, and reports."""

    root: Path
    downloads: "list[ManifestDownload]"
    notes: list[str]
    streams: "dict[str, ChangeStream]"  # state of streams of changes, by address

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a report for each manifest."""
        return [
            {
                **some_of(one, "manifest", "label", "pages", "fetched", "unchanged"),
                "withdrawn": [path.relative_to(self.root).as_posix() for path in one.withdrawn],
                "failed": [{"page": failure["page"], **_described(failure["reason"])} for failure in one.failed],
                **_described(one.reason),
            }
            for one in self.downloads
        ]

    def keep_metadata(self, collection: "Collection", is_whole: bool) -> None:
        """Store the metadata of indexed pages from the manifests; if all are indexed, also the positions of streams."""
        from retrieval.catalogue.settings import keep_setting
        from retrieval.collection.layout import STREAMS_KEY
        from retrieval.collection.sealing import sealed_afterwards
        from retrieval.iiif.changes import streams_text
        from retrieval.iiif.metadata import keep_metadata

        with sealed_afterwards(collection):
            keep_metadata(collection, [one.folder for one in self.downloads if one.folder is not None])
            streams = streams_text(self.streams)
            if is_whole and self.streams and streams != collection.catalogue.setting(STREAMS_KEY):
                collection.catalogue.write(keep_setting, STREAMS_KEY, streams)


def _described(reason: Message | None) -> dict[str, Any]:
    """A reason as a sentence, and as the message that a page translates."""
    return {"reason": "", "message": None} if reason is None else {"reason": str(reason), "message": reason.to_dict()}


def fetch_pages(
    collection: "Collection",
    addresses: Sequence[str],
    options: FetchOptions,
    tell: Progress,
    fetcher: "Fetcher | None" = None,
) -> FetchedPages:
    """Fetch the pages of manifests at the size that a collection reads photos at; `fetcher` is from `open_fetcher`.

    Raises CairnError if the folder cannot be written to, or no address has anything.
    """
    from index.files.rights import make_folders
    from retrieval.collection.layout import STREAMS_KEY
    from retrieval.curation.uploads import uploads_folder
    from retrieval.iiif.changes import streams_from
    from retrieval.iiif.downloads import NeededSize, fetch_manifests

    folder = options.iiif_folder
    root = folder if folder is not None else uploads_folder(collection.folder)
    image = collection.options.image
    size = NeededSize(image.max_side, image.working_side, options.check_pictures)
    streams = streams_from(collection.catalogue.setting(STREAMS_KEY))
    with fetcher or open_fetcher(options) as fetcher:
        try:
            top = root if folder is not None else make_folders(root, FOLDER)[0]
            downloads, notes = fetch_manifests(addresses, top, fetcher, size, tell, streams)
        except OSError as error:
            raise CairnError(
                "Pages cannot be stored in {folder} ({reason}): free some space, or "
                "choose another folder with {--iiif-folder}.",
                folder=error.filename or root,
                reason=error.strerror or error,
            ) from None
    if downloads and all(one.folder is None for one in downloads):
        first = downloads[0]
        raise CairnError("{manifest} cannot be fetched: {reason}.", manifest=first.manifest, reason=first.reason)
    return FetchedPages(root, downloads, notes, streams)


def open_fetcher(options: FetchOptions) -> "Fetcher":
    """Return what asks other hosts, with the access tokens of the environment."""
    from retrieval.iiif.fetching import Fetcher, FetchPolicy

    allowed, free = options.allow_hosts, options.ignore_robots
    return Fetcher(FetchPolicy(allowed_hosts=allowed, ignore_robots=free, tokens=_tokens()))


def check_addresses(addresses: Sequence[str], fetcher: "Fetcher") -> None:
    """Raise CairnError if no address can be fetched, before a collection is created for them. Fetched answers are
    reused by a run with the same `fetcher`.
    """
    from retrieval.iiif.changes import JSON, LARGEST_DOCUMENT
    from retrieval.iiif.manifests import read_document

    first: tuple[str, CairnError] | None = None
    for address in addresses:
        try:
            read_document(fetcher.fetch_ahead(address, LARGEST_DOCUMENT, accept=JSON).content)
            return
        except CairnError as error:
            first = first or (address, error)
    if first is not None:
        raise CairnError("{manifest} cannot be fetched: {reason}.", manifest=first[0], reason=first[1])


def _tokens() -> dict[str, str]:
    """Access tokens by host, as the environment has them."""
    from retrieval.iiif.fetching import TOKENS

    pairs = [one.partition("=") for one in os.environ.get(TOKENS, "").split()]
    if any(not (host and token and token.isascii() and token.isprintable()) for host, _, token in pairs):
        raise CairnError("{variable} has access tokens as HOST=TOKEN, with spaces between them.", variable=TOKENS)
    return {host: token for host, _, token in pairs}


def read_addresses(path: str | os.PathLike[str]) -> list[str]:
    """Read a list of manifests: one address per line; empty lines, and those that begin with ``#``, are ignored."""
    from index.files.reading import open_regular
    from retrieval.iiif.addresses import is_address

    try:
        with open_regular(Path(path)) as file:
            content = file.read(_LONGEST_LIST + 1)
        if len(content) > _LONGEST_LIST:
            raise CairnError(f"{os.fspath(path)} has more than {_LONGEST_LIST >> 20} MB: split it into parts.")
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise CairnError(f"There is no list of manifests {os.fspath(path)!r}; check the name.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise CairnError(f"The list of manifests {os.fspath(path)!r} cannot be read ({reason}).") from None
    addresses = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            if not is_address(line):
                raise CairnError(
                    f"Line {number} of {os.fspath(path)} is no address that begins with http:// or https://: "
                    f"{line[:100]!r}."
                )
            addresses.append(line)
    if not addresses:
        raise CairnError(f"There is no address in {os.fspath(path)}: write one per line.")
    return addresses
