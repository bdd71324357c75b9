"""Downloads of manifests: a folder for each, with a picture for each page, that the next run goes on with.

A folder is called ``HOST/NAME-HASH`` by the address of its manifest. In it are the pages, ``0001-LABEL.jpg``, the
manifest as it was fetched (``.manifest.json``), and what is known of the pages (``.iiif.json``). Files are written
under another name first, so that a page is there whole or not at all. The contents of such a folder are not trusted.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from index.arrays import load_json, save_bytes, save_json
from index.errors import CairnError
from index.files.names import is_plain_name
from index.files.reading import read_regular
from index.files.rights import make_folders
from index.messages import Message
from index.progress import Progress
from retrieval.collection.layout import UNFINISHED
from retrieval.curation.uploads import SPARE
from retrieval.iiif.addresses import parse_address
from retrieval.iiif.changes import JSON, LARGEST_DOCUMENT, ChangeStream, read_changes
from retrieval.iiif.fetching import Fetcher, GoneError, WithheldError, how_to_sign_in
from retrieval.iiif.manifests import ChangePage, IiifManifest, Listing, ManifestPage, read_document
from retrieval.iiif.pictures import NotIiifError, picture_requests

LARGEST_INFO, LARGEST_PICTURE, LARGEST_TILE = 1 << 20, 128 << 20, 16 << 20
"""Bytes of what is fetched."""

MOST_MANIFESTS, MOST_LISTINGS = 20_000, 2_000
"""Manifests of one run, and collections of them."""

_MANIFEST, _STATE = ".manifest.json", ".iiif.json"
_FORMAT = 1
_TEXTS = ("address", "etag", "modified", "digest")
_SAVED_EVERY = 16  # pages
_THREADS, _AHEAD = 4, 8
_ABANDONED = 24 * 3600.0  # seconds
_COMMON = frozenset(("manifest", "iiif", "presentation", "presentation2", "presentation3", "index", "info"))
_KINDS = ((b"\xff\xd8\xff", ".jpg"), (b"\x89PNG\r\n\x1a\n", ".png"), (b"II*\0", ".tif"), (b"MM\0*", ".tif"))

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class NeededSize:
    """The size at which pictures are needed."""

    limit: int  # longer side, in pixels; 0: as they are
    of: Callable[[int, int], int]  # longer side, of a picture of some width and height
    is_checked: bool = False  # whether existing pictures are fetched again, as the library may have replaced them


@dataclass
class ManifestDownload:
    """Result of a manifest in one run."""

    manifest: str  # its address
    label: str = ""
    folder: Path | None = None  # None: nothing of it was ever fetched
    pages: int = 0  # that the manifest has now
    fetched: int = 0  # that are new, or have changed
    unchanged: int = 0
    withdrawn: list[Path] = field(default_factory=list)  # files of pages that the manifest has no longer
    failed: list[dict[str, Any]] = field(default_factory=list)  # page and reason, a message
    reason: Message | None = None  # why the manifest could not be fetched; its pages stay


def fetch_manifests(
    addresses: Sequence[str],
    folder: Path,
    fetcher: Fetcher,
    size: NeededSize,
    tell: Progress,
    streams: dict[str, ChangeStream] | None = None,
) -> tuple[list[ManifestDownload], list[str]]:
    """Update the downloads of manifests, of all manifests of collections, and of changes in streams. Returns the
    downloads in order, one for each manifest and each address that could not be fetched, and notices. Raises OSError
    where the folder cannot be written to.
    """
    make_folders(folder)
    run = _Run(dict.fromkeys(addresses), {} if streams is None else streams)
    counted = [0, 0]  # pages that are done, and that are known
    while run.left and not run.is_over():
        download = ManifestDownload(run.left.popleft())
        try:
            document = _document(download, folder, fetcher)
            if isinstance(document, IiifManifest):
                _fetch_pages(download, document, fetcher, size, counted, tell)
                run.settle(download.manifest, is_done=not download.failed)
            else:
                run.listings += 1
                if isinstance(document, Listing):
                    run.settle(download.manifest, document.members)
                    run.add(document.members)
                else:
                    run.follow(download.manifest, document, folder, fetcher)
                continue
        except CairnError as error:
            known = download.folder is not None
            gone = Message("{error}: the manifest was withdrawn, its pages stay", error=error)
            download.reason = gone if known and isinstance(error, GoneError) else error.message
            run.settle(download.manifest, is_done=isinstance(error, GoneError))
        run.downloads.append(download)
    return run.downloads, run.notes


class _Run:
    """Addresses to fetch, and results."""

    def __init__(self, addresses: Iterable[str], streams: dict[str, ChangeStream]) -> None:
        self.left, self._seen, self._streams = deque(addresses), set(addresses), streams
        self.downloads: list[ManifestDownload] = []
        self.notes: list[str] = []
        self.listings = 0

    def is_over(self) -> bool:
        """Whether the limit of this run is reached, which adds a notice."""
        if len(self.downloads) >= MOST_MANIFESTS:
            self.notes.append(
                f"Only the first {MOST_MANIFESTS:,} manifests were fetched: those of a stream of changes come with the "
                "next run, name others in one of their own."
            )
        elif self.listings > MOST_LISTINGS:
            self.notes.append(f"Only the first {MOST_LISTINGS:,} collections of manifests were looked into.")
        else:
            return False
        return True

    def add(self, addresses: Iterable[str]) -> None:
        """Fetch addresses that are not known yet."""
        new = [one for one in addresses if one not in self._seen][: 10 * MOST_MANIFESTS - len(self._seen)]
        self._seen.update(new)
        self.left.extend(new)

    def follow(self, address: str, page: ChangePage, folder: Path, fetcher: Fetcher) -> None:
        """Fetch the changes of a stream, and note manifests that are gone."""
        stream = self._streams.get(address, ChangeStream())
        moved: dict[str, str] = {}
        for manifest, reason in read_changes(address, page, stream, fetcher, self.notes, moved).items():
            place = folder.joinpath(*_names(manifest))
            if manifest in moved and _move(place, folder, moved[manifest]):
                continue
            if reason and (place / _MANIFEST).is_file():
                self.downloads.append(ManifestDownload(manifest, folder=place, reason=reason))
        self._streams[address] = stream
        if not stream.left:
            since = f" since {stream.until:%Y-%m-%d %H:%M:%S} UTC" if stream.until else ""
            self.notes.append(f"{address} lists nothing to fetch{since}.")
        self.add(stream.left)

    def settle(self, address: str, members: Iterable[str] = (), is_done: bool = True) -> None:
        """Replace an address that is left in streams by its members."""
        for stream in self._streams.values():
            if is_done and address in stream.left:
                del stream.left[address]
                stream.left.update(dict.fromkeys(members))


def _move(place: Path, top: Path, address: str) -> bool:
    """Rename the folder of a manifest after its new address, if that is free; return whether it was renamed."""
    names = _names(address)
    with suppress(OSError):
        state = _DownloadState.read(place)
        if not state.address or place.is_symlink() or os.path.lexists(top.joinpath(*names)):
            return False
        make_folders(top, names[0])
        state.folder = place.rename(top.joinpath(*names))
        state.address, state.digest = address, ""  # it counts as fetched, whatever it was
        state.save()
        return True
    return False


def manifest_in(folder: Path) -> tuple[str, IiifManifest, dict[str, ManifestPage]] | None:
    """Read the folder of a manifest: its address, the manifest, and its pages by their files."""
    state = _DownloadState.read(folder)
    with suppress(OSError, CairnError):
        document = read_document(read_regular(folder / _MANIFEST))
        if isinstance(document, IiifManifest):
            files = {page.canvas: page for page in document.pages}
            return (
                state.address,
                document,
                {one["file"]: files[key] for key, one in state.pages.items() if key in files},
            )
    return None


@dataclass
class _DownloadState:
    """State of the downloads of a manifest."""

    folder: Path
    address: str = ""
    etag: str = ""
    modified: str = ""
    digest: str = ""  # SHA-256 of the manifest that is kept
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)  # by canvas: file, picture, side

    @classmethod
    def read(cls, folder: Path) -> "_DownloadState":
        state = cls(folder)
        try:
            record = load_json(folder / _STATE)
        except (OSError, CairnError):
            return state
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            return state
        for key in _TEXTS:
            setattr(state, key, record[key] if isinstance(record.get(key), str) else "")
        pages = record.get("pages")
        for canvas, one in pages.items() if isinstance(pages, dict) else ():
            if (
                isinstance(one, dict)
                and is_plain_name(one.get("file"))
                and not one["file"].startswith(".")
                and isinstance(one.get("picture"), str)
                and isinstance(one.get("side"), int)
            ):
                state.pages[canvas] = {key: one[key] for key in ("file", "picture", "side")}
        return state

    def save(self) -> None:
        record = {key: getattr(self, key) for key in _TEXTS}
        save_json(self.folder / _STATE, {"format": _FORMAT, **record, "pages": self.pages})

    def has(self, page: ManifestPage, limit: int) -> bool:
        """Whether the picture of a page is there, and large enough."""
        known = self.pages.get(page.canvas)
        if known is None or known["picture"] != _picture(page):
            return False
        is_enough = known["side"] == 0 or 0 < limit <= known["side"]
        file = self.folder / known["file"]
        return is_enough and file.is_file() and not file.is_symlink()


def _document(download: ManifestDownload, top: Path, fetcher: Fetcher) -> IiifManifest | Listing | ChangePage:
    """Fetch a manifest, a collection or a stream of changes; keep a manifest in its folder."""
    names = _names(download.manifest)
    folder = top.joinpath(*names)
    state = _DownloadState.read(folder) if folder.is_dir() else _DownloadState(folder)
    known: bytes | None = None
    with suppress(OSError, CairnError):
        known = read_regular(folder / _MANIFEST)
    if known is not None and (state.address, state.digest) != (download.manifest, hashlib.sha256(known).hexdigest()):
        known = None
    if known is not None:
        download.folder = folder
    since = {"etag": state.etag, "modified": state.modified} if known is not None else {}
    answer = fetcher.fetch(download.manifest, LARGEST_DOCUMENT, accept=JSON, **since)
    content = known if answer.is_same and known is not None else answer.content
    document = read_document(content)
    if not isinstance(document, IiifManifest):
        return document
    download.label, download.pages, download.folder = document.label, len(document.pages), folder
    make_folders(top, *names)  # in each run: a copied folder may have links instead
    if not answer.is_same and (content, answer.etag, answer.modified) != (known, state.etag, state.modified):
        state.address, state.etag, state.modified = download.manifest, answer.etag, answer.modified
        state.digest = hashlib.sha256(content).hexdigest()
        save_bytes(folder / _MANIFEST, content)
        state.save()
    return document


def _fetch_pages(
    download: ManifestDownload,
    manifest: IiifManifest,
    fetcher: Fetcher,
    size: NeededSize,
    counted: list[int],
    tell: Progress,
) -> None:
    assert download.folder is not None
    _remove_leftovers(download.folder)
    state = _DownloadState.read(download.folder)
    canvases = {page.canvas for page in manifest.pages}
    gone = [one["file"] for canvas, one in state.pages.items() if canvas not in canvases]
    download.withdrawn = [download.folder / file for file in sorted(gone)]
    pages = enumerate(manifest.pages, 1)
    lacking = [(n, page) for n, page in pages if size.is_checked or not state.has(page, size.limit)]
    download.unchanged = len(manifest.pages) - len(lacking)
    counted[0] += download.unchanged
    counted[1] += len(manifest.pages)
    tell("fetch", counted[0], counted[1])
    taken = {one["file"].casefold() for one in state.pages.values()}
    pool = ThreadPoolExecutor(_THREADS)
    try:
        for number, page, content in _ahead(pool, lambda one: (*one, _picture_of(one[1], fetcher, size)), lacking):
            counted[0] += 1
            tell("fetch", counted[0], counted[1])
            if isinstance(content, Message):
                download.failed.append({"page": page.label or page.canvas, "reason": content})
                continue
            suffix = _suffix(content)
            assert suffix is not None
            before = state.pages.get(page.canvas)
            file = before["file"] if before else _file_name(number, page, suffix, taken)
            if Path(file).suffix != suffix:  # a picture that has changed its format
                file = _file_name(number, page, suffix, taken)
            taken.add(file.casefold())
            if before and state.has(page, size.limit) and read_regular(download.folder / file) == content:
                download.unchanged += 1
                continue
            if shutil.disk_usage(download.folder).free < SPARE + len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            save_bytes(download.folder / file, content)
            state.pages[page.canvas] = {"file": file, "picture": _picture(page), "side": size.limit}
            download.fetched += 1
            if download.fetched % _SAVED_EVERY == 0:
                state.save()
    except BaseException:
        fetcher.close()  # what other threads wait for
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        if download.fetched:
            state.save()


def _remove_leftovers(folder: Path) -> None:
    """Remove unfinished files of killed runs that are older than a day: another run may be writing now."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            if UNFINISHED.fullmatch(path.name) and time.time() - path.lstat().st_mtime > _ABANDONED:
                path.unlink()


def _ahead(pool: ThreadPoolExecutor, do: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Apply a function to each item, in order, only a few items ahead of the consumer, as pictures wait in memory."""
    waiting: deque[Future[R]] = deque()
    for item in items:
        waiting.append(pool.submit(do, item))
        if len(waiting) > _AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _picture_of(page: ManifestPage, fetcher: Fetcher, size: NeededSize) -> bytes | Message:
    """Fetch the picture of a page, or return why that failed."""
    try:
        content = None
        if page.service:
            try:
                content = _through_service(page, fetcher, size)
            except (GoneError, NotIiifError):
                if not page.image:
                    raise
        if content is None:
            content = fetcher.fetch(page.image, LARGEST_PICTURE, accept="image/jpeg, image/png, image/*;q=0.5").content
    except CairnError as error:
        if page.is_protected and type(error) is WithheldError:
            host = parse_address(page.service or page.image).host
            return Message("{error}: {how}", error=error, how=how_to_sign_in(host))
        gone = Message("{error}: the page was withdrawn", error=error)
        return gone if isinstance(error, GoneError) else error.message
    if _suffix(content) is None:
        return Message("what was sent is no picture (JPEG, PNG, TIFF or WebP)")
    return content


def _through_service(page: ManifestPage, fetcher: Fetcher, size: NeededSize) -> bytes:
    """Fetch a picture through the Image API: at once or in tiles."""
    info = fetcher.fetch(f"{page.service}/info.json", LARGEST_INFO, accept="application/ld+json, */*;q=0.5")
    best, *others = picture_requests(_json(info.content), size.of, page.version)
    while True:
        try:
            if isinstance(best, str):
                return fetcher.fetch(f"{page.service}/{best}", LARGEST_PICTURE).content
            return best.join(lambda target: fetcher.fetch(f"{page.service}/{target}", LARGEST_TILE).content)
        except (WithheldError, NotIiifError):
            if not others:
                raise
            best = others.pop()


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise NotIiifError("its info.json is no JSON") from None


def _suffix(content: bytes) -> str | None:
    """The extension of a picture, by its first bytes; None for other formats."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return ".webp"
    return next((suffix for start, suffix in _KINDS if content.startswith(start)), None)


def _picture(page: ManifestPage) -> str:
    """Value that changes when a page gets another picture."""
    return page.service or page.image


def _names(address: str) -> tuple[str, str]:
    """Names of the folder of a manifest, by its address: the host, and its name and hash there.

    >>> _names("https://Example.org/iiif/ark:/12148/b%C3%BCch/manifest.json")
    ('example.org', 'büch-e5dc2f48')
    """
    parsed = parse_address(address)
    parts = [_slug(unquote(part).removesuffix(".json"), 60) for part in re.split("[/?&=]", parsed.target)]
    telling = [part for part in parts if part and part.lower() not in _COMMON]
    name = telling[-1] if telling else "manifest"
    port = parsed.text.split("/")[2].rpartition(":")[2]
    host = f"{parsed.host}_{port}" if port.isdecimal() and port != parsed.host else parsed.host
    return _slug(host, 100) or "host", f"{name}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def _file_name(number: int, page: ManifestPage, suffix: str, taken: set[str]) -> str:
    """Name the file of a page: by its place when it was first seen, and its label."""
    end = unquote(page.canvas).rstrip("/").rpartition("/")[2]
    stem = "-".join(filter(None, (f"{number:04}", _slug(page.label or end, 60))))
    if f"{stem}{suffix}".casefold() in taken:
        stem = f"{stem}-{hashlib.sha256(page.canvas.encode()).hexdigest()[:8]}"
    return f"{stem}{suffix}"


def _slug(text: str, longest: int) -> str:
    """Reduce a text to what is allowed in file names on every system."""
    plain = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", text))
    return plain.encode()[:longest].decode("utf-8", "ignore").strip("._-")
