"""Resumable downloads from an address or its mirrors, checked against the published hash.

A partial file is stored next to it in ``FILE.part``, with its address and state (``ETag`` or ``Last-Modified``) in
``FILE.part.json``. The file gets its name only when it is complete and has the right hash (pooch checks that), so an
existing file is complete.
"""

import errno
import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from eval.sets.manifests import Address
from index.errors import CairnError
from index.progress import Step, silent
from index.text import printable_name

if TYPE_CHECKING:
    import requests

_CHUNK = 1 << 18
_ATTEMPTS = 5  # attempts in a row without data
_LATER = (408, 425, 429, 500, 502, 503, 504)  # temporary failures
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
_NEVER = ("SSLError", "InvalidURL", "InvalidSchema", "MissingSchema", "TooManyRedirects", "InvalidProxyURL")


class _Refused(Exception):
    """An address refuses the file; the next one is tried."""


class _Cut(Exception):
    """A connection ended early or failed."""


@dataclass(frozen=True)
class Fetched:
    """An existing file."""

    path: Path
    address: str | None  # its source address; None if it existed
    sha256: str


@dataclass
class _PartialFile:
    path: Path
    note: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    def kept(self) -> dict[str, Any]:
        """Its recorded state; empty if unreadable."""
        try:
            noted = json.loads(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return noted if isinstance(noted, dict) else {}

    def begin(self, noted: dict[str, Any]) -> None:
        """Delete the partial data, and record the state of the next download."""
        self.path.unlink(missing_ok=True)
        self.note.write_text(json.dumps(noted), encoding="utf-8")

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


def fetch(
    file: str, addresses: tuple[Address, ...], folder: Path, progress: Step = silent, *, wait: float = 1.0
) -> Fetched:
    """Download a file, or resume it, from the first working address."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    folder.mkdir(parents=True, exist_ok=True)
    path, part = folder / file, _PartialFile(folder / f"{file}.part", folder / f"{file}.part.json")
    if path.is_file():
        known = {one.hash for one in addresses}
        if None in known or any(pooch.hashes.hash_matches(path, one) for one in known):
            return Fetched(path, None, pooch.file_hash(path))
        path.unlink()
    reasons = []
    for address in addresses:
        try:
            _from_address(address, path, part, progress, wait)
            return Fetched(path, address.url, pooch.file_hash(path))
        except _Refused as error:
            reasons.append(f"{printable_name(address.url)} {error}")
    again = "; run the same command again to go on" if part.size else ""
    raise CairnError(f"{file} cannot be downloaded: {', and '.join(reasons)}{again}.")


def _from_address(address: Address, path: Path, part: _PartialFile, progress: Step, wait: float) -> None:
    """Download from one address; restart once if a resumed file has a wrong hash."""
    import pooch

    for first in (True, False):
        continued = part.size > 0
        downloader = _Downloader(address, part, progress, wait)
        try:
            pooch.retrieve(address.url, address.hash, fname=path.name, path=path.parent, downloader=downloader)
            return
        except ValueError:  # pooch found a wrong hash and removed the file
            if continued and first:
                continue
            kind = "SHA-256" if address.sha256 else "MD5"
            raise _Refused(f"gives a file that has not the published {kind}, which was removed") from None


@dataclass
class _Downloader:
    """Downloader for pooch: called with the address and the file to write."""

    address: Address
    part: _PartialFile
    progress: Step
    wait: float

    def __call__(self, url: str, output_file: Any, pooch: Any, check_only: bool = False) -> None:
        failed, reason = 0, ""
        while failed < _ATTEMPTS:
            if failed:
                time.sleep(self.wait * 2 ** (failed - 1))
            before = self.part.size
            try:
                (self._ftp if urlsplit(url).scheme == "ftp" else self._http)(url)
                break
            except _Cut as cut:
                reason = str(cut)
                failed = 1 if self.part.size > before else failed + 1
        else:
            raise _Refused(f"{reason} {_ATTEMPTS} times in a row")
        self.part.path.replace(output_file)
        self.part.forget()

    def _http(self, url: str) -> None:
        import requests

        state = self.part.kept()
        have = self.part.size if state.get("url") == url or self._same_file(state) else 0
        headers = {"Accept-Encoding": "identity", "User-Agent": "cairn"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if state.get("url") == url and state.get("state"):
                headers["If-Range"] = state["state"]
        with _said_plainly(), requests.get(url, headers=headers, stream=True, timeout=(15, 60)) as answer:
            if answer.status_code == 416 and have:
                if _range_total(answer) == have:
                    return
                self.part.forget()
                raise _Cut("answers that it has less than was downloaded")
            if answer.status_code in _LATER:
                raise _Cut(f"answers {answer.status_code}")
            if answer.status_code not in (200, 206):
                raise _Refused(f"answers {answer.status_code} {printable_name(answer.reason or '')}".rstrip())
            self._take(url, answer, have, state.get("total"))

    def _take(self, url: str, answer: "requests.Response", have: int, noted: int | None) -> None:
        """Append a response to the partial file, or replace it."""
        if answer.status_code == 206:
            start, total = _range_start(answer), _range_total(answer)
            if start != have or (noted and total and total != noted):
                self.part.forget()
                raise _Cut("gives another part of the file than was asked for")
        else:
            length = answer.headers.get("Content-Length", "")
            have, total = 0, int(length) if length.isdecimal() else None
        self._check(total)
        if not have:
            state = answer.headers.get("ETag", "")
            if not state or state.startswith("W/"):
                state = answer.headers.get("Last-Modified", "")
            self.part.begin({"url": url, "state": state, "total": total})
        with self.part.path.open("ab") as file:
            # Read available data instead of full chunks, which would be lost if the connection ends.
            while chunk := answer.raw.read1(_CHUNK, decode_content=False):
                file.write(chunk)
                self.progress(file.tell(), total or self.address.bytes or 0)
        self._check_end(total)

    def _ftp(self, url: str) -> None:
        import ftplib

        place = urlsplit(url)
        state = self.part.kept()
        have = self.part.size if state.get("url") == url else 0
        try:
            with ftplib.FTP(timeout=60) as server:
                server.connect(place.hostname or "", place.port or 21)
                server.login()
                server.voidcmd("TYPE I")
                total = server.size(unquote(place.path))
                self._check(total)
                if not have or state.get("total") != total:
                    have = 0
                    self.part.begin({"url": url, "state": "", "total": total})
                with self.part.path.open("ab") as file:

                    def write(chunk: bytes) -> None:
                        file.write(chunk)
                        self.progress(file.tell(), total or 0)

                    if have != total:
                        server.retrbinary(f"RETR {unquote(place.path)}", write, _CHUNK, rest=have or None)
        except ftplib.error_perm as error:
            raise _Refused(f"answers {printable_name(str(error))}") from error
        except ftplib.all_errors as error:
            if isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK):
                raise
            raise _Cut("cannot be reached, or ends the connection,") from error
        self._check_end(total)

    def _same_file(self, state: dict[str, Any]) -> bool:
        """Whether a partial file from another address may belong to this file, by size; the hash decides later."""
        return (
            self.address.hash is not None
            and self.address.bytes is not None
            and state.get("total") == self.address.bytes
        )

    def _check(self, total: int | None) -> None:
        """Refuse a file of another size, or one too large for the disk."""
        if total is not None and self.address.bytes is not None and total != self.address.bytes:
            raise _Refused(f"has a file of {total:,} bytes, where {self.address.bytes:,} were published")
        free = shutil.disk_usage(self.part.path.parent).free
        if total is not None and total - self.part.size > free:
            raise CairnError(
                f"{self.part.path.parent} has {free / 1e9:.1f} GB free, and {total / 1e9:.1f} GB are downloaded: make "
                "room, then run the same command again."
            )

    def _check_end(self, total: int | None) -> None:
        size = self.part.size
        if total is not None and size < total:
            raise _Cut("ends the connection early")
        wanted = total if total is not None else self.address.bytes
        if wanted is not None and size != wanted:
            self.part.forget()
            raise _Refused(f"gives {size:,} bytes, where it should give {wanted:,}")


@contextmanager
def _said_plainly() -> Iterator[None]:
    """Turn errors of requests into a cut connection, or into a refusal if retrying is useless."""
    import requests
    import urllib3

    try:
        yield
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        if type(error).__name__ in _NEVER:
            raise _Refused(f"cannot be used ({type(error).__name__})") from error
        late = isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError)
        raise _Cut("does not answer in time" if late else "cannot be reached, or ends the connection,") from error


def _range_total(answer: "requests.Response") -> int | None:
    match = re.fullmatch(r"bytes (?:\d+-\d+|\*)/(\d+)", answer.headers.get("Content-Range", "").strip())
    return int(match[1]) if match else None


def _range_start(answer: "requests.Response") -> int | None:
    match = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", "").strip())
    return int(match[1]) if match else None
