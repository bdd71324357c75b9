"""Routes of photos that come in: folders of this machine that may be chosen, and uploads that are kept.

Uploads lie in the folder ``uploads`` of the collection, in one for each day. A collection is skipped where a folder
above it is indexed, so that they are found by indexing that folder itself, as the job here does, and ``cairn index
COLLECTION COLLECTION/uploads``. Searches, ``cairn check`` and ``cairn repair`` know them by their paths as all other
photos.
"""

import contextlib
import filecmp
import os
import re
import shutil
import tempfile
import time
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from index.files.rights import make_folders
from retrieval.catalogue.photos import photo_of_each_root
from retrieval.collection.layout import INCOMING, OPTIONS, UPLOADS
from retrieval.jobs.kinds import index_of
from retrieval.photos.listing import PHOTO_SUFFIXES, stays_below
from retrieval.web.access.rights import WRITING
from retrieval.web.problems import ProblemError
from retrieval.web.service import Service, service_of
from retrieval.web.uploads import Receiver, form_of

router = APIRouter(prefix="/api", tags=["adding photos"])

MOST_LISTED = 2000
"""Folders that are listed of one, and entries that are looked at are ten times as many."""

SPARE = 500_000_000
"""Bytes that uploads leave free on the disk."""

_FOREIGN = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')  # what no file may be called on some system
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LONGEST = 180  # bytes of a name
_DEEPEST = 8  # folders below one another that an upload keeps
_ABANDONED = 24 * 3600.0  # seconds after which what a killed server received is removed


class Root(BaseModel):
    """A folder below which photos may be chosen."""

    root: int
    name: str


class KnownFolder(BaseModel):
    """A folder that was indexed."""

    name: str
    there: bool = Field(description="Whether it is there, and photos may be taken from it.")


class Roots(BaseModel):
    """Where photos may be taken from."""

    roots: list[Root]
    known: list[KnownFolder] = Field(description="Folders whose photos are in the collection.")


class SubFolder(BaseModel):
    """A folder in another."""

    name: str
    path: str = Field(description="Below the root.")


class RootFolder(BaseModel):
    """What lies in a folder."""

    root: int
    name: str
    path: str
    photos: int = Field(description="Files in it that look like photos, those of folders in it not counted.")
    folders: list[SubFolder]
    more: bool = Field(description="Whether there is more in it than was looked at.")


class Kept(BaseModel):
    """Uploads that were kept."""

    photos: list[str] = Field(description="Names of the photos, in the order of the form.")
    job: int | None = Field(description="Number of the job that indexes them.")


@router.get("/roots", dependencies=WRITING)
def roots(request: Request) -> Roots:
    """List the folders below which photos may be chosen."""
    service = service_of(request)
    known = [
        KnownFolder(
            name="" if one == service.folder / UPLOADS else one.name, there=service.takes_from(one) and one.is_dir()
        )
        for one in known_folders(service)
    ]
    return Roots(roots=named_roots(service.options.roots), known=known)


@router.get("/roots/{root}/folders", dependencies=WRITING)
def root_folder(
    request: Request,
    root: Annotated[int, InPath(ge=0, le=10_000, description="As /api/roots lists it.")],
    path: Annotated[str, Query(max_length=4096, description="Of a folder below the root; empty: the root.")] = "",
) -> RootFolder:
    """Tell what lies in a folder below a root: folders, and how many photos."""
    return describe_folder(service_of(request).options.roots, root, path)


def named_roots(roots: Sequence[Path]) -> list[Root]:
    """Folders below which photos may be chosen, without where they lie."""
    return [Root(root=place, name=root.name or str(root)) for place, root in enumerate(roots)]


def describe_folder(roots: Sequence[Path], root: int, path: str) -> RootFolder:
    """Tell what lies in a folder below one of some roots; ProblemError where there is no such folder."""
    folder = folder_below(roots, root, path)
    top = roots[root].resolve()
    folders: list[str] = []
    photos = looked = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                looked += 1
                if looked > 10 * MOST_LISTED or len(folders) >= MOST_LISTED:
                    break
                if entry.name.startswith("."):
                    continue
                if _is_folder_in(entry, top):
                    folders.append(entry.name)
                elif PurePosixPath(entry.name).suffix.lower() in PHOTO_SUFFIXES:
                    photos += 1
    except OSError as error:
        raise ProblemError(
            403, "This folder cannot be read ({strerror}): choose another.", strerror=error.strerror
        ) from None
    base = PurePosixPath(path)
    listed = [
        SubFolder(name=name, path=str(base / name)) for name in sorted(folders, key=str.casefold) if _is_text(name)
    ]
    more = looked > 10 * MOST_LISTED or len(folders) >= MOST_LISTED
    return RootFolder(root=root, name=folder.name, path=path, photos=photos, folders=listed, more=more)


_FORM = form_of(
    {
        "photos": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "index": {
            "type": "string",
            "enum": ["yes", "no"],
            "description": "no: only keep them, as more are to come; a job of the kind index with the "
            "source uploads then indexes them all.",
        },
        "folder": {
            "type": "string",
            "description": "Folder that the photos were in, such as Summer/Castle: it becomes part of their names.",
        },
    },
    required=["photos"],
)


@router.post("/photos", status_code=201, dependencies=WRITING, openapi_extra=_FORM)
async def add_photos(request: Request) -> Kept:
    """Keep photos in the collection, and index them."""
    service = service_of(request)
    receiver = await run_in_threadpool(_receiver, service, request.headers.get("content-length", ""))
    async with receiver.receive(request) as form:
        if not form.photos:
            raise ProblemError(400, "Send photos, as the field photos of the form.")
        names = [safe_name(name) for name in form.names]
        within = safe_folder(form.fields.get("folder", ""))
        kept = await run_in_threadpool(_keep, service, form.photos, names, within)
        index = form.fields.get("index") != "no"
    number = None
    if index:
        job = await run_in_threadpool(service.begin, index_of([service.folder / UPLOADS]))
        number = job.id
    return Kept(photos=kept, job=number)


def folder_below(roots: Sequence[Path], root: int, path: str) -> Path:
    """Give a folder below a root, by its real name; ProblemError where it is none, or links lead out of the root."""
    if root >= len(roots):
        raise ProblemError(404, "There is no such folder to choose from.")
    top = roots[root].resolve()
    parts = PurePosixPath(path).parts
    if "\0" in path or path.startswith("/") or ".." in parts or any(part.startswith(".") for part in parts):
        raise ProblemError(404, "There is no such folder.")
    try:
        found = (top / path).resolve(strict=True)
        inside = found.is_relative_to(top) and found.is_dir()
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside or _is_collection(found, top):
        raise ProblemError(404, "There is no such folder.")
    return found


def known_folders(service: Service) -> list[Path]:
    """Folders that were indexed: what the paths of photos have before their names."""
    found = service.collection.catalogue.read(photo_of_each_root)
    return sorted({Path(path.removesuffix(name)) for name, path in found if path.endswith(f"/{name}")})


def under_known_names(photos: Sequence[Path], folders: Collection[Path]) -> list[Path]:
    """Say what to index so that photos get the names that they had: folders that were indexed with what is in them.

    A photo that lies in none of the folders, or right in one, goes by its own name.
    """
    above = {path: next((one for one in path.parents if one in folders), path.parent) for path in photos}
    return list(dict.fromkeys(path if folder == path.parent else folder for path, folder in above.items()))


def safe_name(name: str) -> str:
    """Make a name that a file may have on every system of what a sender calls a photo.

    Raises
    ------
    ProblemError
        It does not end like the name of a photo.

    >>> safe_name("../.../Übung:1?.JPG")
    'Übung_1_.JPG'
    """
    plain = _plain(name.replace("\\", "/").rpartition("/")[2])
    stem, dot, suffix = plain.rpartition(".")
    if not dot or f".{suffix.lower()}" not in PHOTO_SUFFIXES:
        shown = plain[-80:] or "a file without a name"
        raise ProblemError(
            415, "{shown} is no photo, by its ending: send JPEG, PNG, TIFF, WebP or HEIC files.", shown=shown
        )
    stem = stem.strip(" .") or "photo"
    if _RESERVED.fullmatch(stem):
        stem = f"{stem}_"
    return f"{stem.encode()[: _LONGEST - len(suffix)].decode('utf-8', 'ignore')}.{suffix}"


def safe_folder(path: str) -> PurePosixPath:
    """Make a path below a folder, that every system may have, of what a sender says of the folder of a photo.

    >>> safe_folder("/../Sommer/C:/.versteckt/Burg.").as_posix()
    'Sommer/C_/versteckt/Burg'
    """
    parts = []
    for part in map(_plain, path.replace("\\", "/").split("/")):
        short = part.encode()[: _LONGEST // 3].decode("utf-8", "ignore").strip(" .")
        if short:
            parts.append(f"{short}_" if _RESERVED.fullmatch(short) else short)
    return PurePosixPath(*parts[:_DEEPEST])


def _plain(name: str) -> str:
    """Take out of a name what no file may be called on some system, and what turns text round."""
    plain = unicodedata.normalize("NFC", name)
    plain = _FOREIGN.sub("_", "".join(one if unicodedata.category(one) != "Cs" else "_" for one in plain))
    return "".join(one for one in plain if unicodedata.category(one) != "Cf").strip(" .")


def _receiver(service: Service, length: str) -> Receiver:
    """Make what receives uploads on the disk where they stay; ProblemError where that is full or not to be written."""
    folder = service.folder / UPLOADS
    try:
        with service.keeping_lock:
            if service.keeping is None:
                _make_own(folder, service.folder)
                _remove_abandoned(folder)
                incoming = Path(tempfile.mkdtemp(prefix=INCOMING, dir=folder))
                service.keeping = incoming, Receiver(incoming, service.options.kept)
            incoming, receiver = service.keeping
            incoming.mkdir(mode=0o700, exist_ok=True)  # another server may have taken it for abandoned
            os.utime(incoming)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise ProblemError(
            507, "The server cannot keep photos ({strerror}): see why there.", strerror=error.strerror
        ) from None
    if free < SPARE + (int(length) if length.isdecimal() and len(length) < 16 else 0):
        raise ProblemError(507, "The disk of the server is nearly full: free some room there, and upload again.")
    return receiver


def _remove_abandoned(folder: Path) -> None:
    """Remove folders of uploads that servers which were killed have left."""
    for left in folder.glob(f"{INCOMING}*"):
        with contextlib.suppress(FileNotFoundError):  # another server removes it, or its own at its end
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)


def _keep(service: Service, received: list[Path], names: list[str], within: PurePosixPath) -> list[str]:
    """Give received photos a place and a name of their own; nothing is overwritten, what is there already stays one."""
    uploads = service.folder / UPLOADS
    folder = uploads
    try:
        _make_own(uploads, service.folder)
        for part in (datetime.now(UTC).strftime("%Y-%m-%d"), *within.parts):
            folder /= part
            while os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):  # a photo of that name
                folder = folder.with_name(f"{folder.name}_")
        below = folder.relative_to(uploads)
        _, mode = make_folders(uploads, *below.parts)
        for path in received:
            path.chmod(mode)
        return [(below / _place(path, folder, name)).as_posix() for path, name in zip(received, names, strict=True)]
    except OSError as error:
        raise ProblemError(
            507, "The server cannot keep the photo ({strerror}): free some room there.", strerror=error.strerror
        ) from None


def _make_own(folder: Path, above: Path) -> None:
    """Make a folder of uploads; ProblemError where it is a link that leads elsewhere."""
    make_folders(folder)
    if not stays_below(folder, [above]):
        raise ProblemError(
            409, "The folder of uploads of this collection leads elsewhere: put a folder in the place of the link."
        )


def _place(path: Path, folder: Path, name: str) -> str:
    _flush(path)
    for candidate in _names(name):
        there = folder / candidate
        try:
            _move(path, there)
        except FileExistsError:
            with contextlib.suppress(OSError):
                if filecmp.cmp(path, there, shallow=False):
                    return candidate
        else:
            return candidate
    raise AssertionError


def _names(name: str) -> Iterator[str]:
    stem, _, suffix = name.rpartition(".")
    yield name
    number = 2
    while True:
        yield f"{stem} ({number}).{suffix}"
        number += 1


def _move(path: Path, there: Path) -> None:
    """Name a file anew; FileExistsError where that name is taken."""
    try:
        there.hardlink_to(path)  # the one way that never overwrites; the old name goes with the request
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with there.open("xb"):
            pass
        path.replace(there)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _is_folder_in(entry: os.DirEntry[str], top: Path) -> bool:
    """Whether an entry is a folder within a root, wherever links lead, and no collection."""
    try:
        if not entry.is_dir():
            return False
        real = Path(entry.path).resolve()
        return real.is_relative_to(top) and not os.path.lexists(Path(entry.path) / OPTIONS)
    except (OSError, RuntimeError):
        return False


def _is_collection(folder: Path, top: Path) -> bool:
    """Whether a folder is a collection, or lies in one."""
    above = [folder, *folder.parents]
    return any(os.path.lexists(one / OPTIONS) for one in above[: above.index(top) + 1])


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that are no text
        return False
    return True
