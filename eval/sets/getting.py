"""Get published sets: missing files are downloaded, unpacked where the evaluators look, and checked.

Archives are stored in ``ROOT/.downloads/SET/`` and removed once the set is complete. Each folder of a set is unpacked
next to its place and renamed, or, if a folder with other files exists, merged into it without overwriting files.
"""

import errno
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from eval.protocols.pickles import read_pickle
from eval.sets.checks import SetFinding, check
from eval.sets.downloads import Fetched, fetch
from eval.sets.layouts import locate
from eval.sets.manifests import Download, Manifest, read_manifest
from eval.sets.unpacking import BadArchive, unpack
from eval.sets.volumes import unpack_volumes
from index.errors import CairnError
from index.progress import Progress
from retrieval.collection.locking import lock_file

DOWNLOADS = ".downloads"
"""Folder of archives below the root; hidden, so that its files are not taken for photos."""


_MB = 1_000_000


@dataclass
class Got:
    """Result of getting a set."""

    finding: SetFinding  # its state now
    # requested parts of the layout; for a set needed by another one, perhaps only its photos
    parts: set[str]
    # of each downloaded file: name, address, and SHA-256
    files: list[dict[str, str]] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether all requested parts are complete."""
        return not any(map(self.finding.lacks, self.parts or self.finding.wanted))

    @property
    def status(self) -> str:
        """One of: there, got, incomplete."""
        if not self.done:
            return "incomplete"
        return "got" if self.files else "there"

    def as_json(self) -> dict[str, Any]:
        """Dictionary for ``--json``."""
        return {**self.finding.as_json(), "status": self.status, "files": self.files}


def get(
    names: list[str],
    root: Path,
    progress: Progress,
    *,
    manifests: Path | None = None,
    keep_archives: bool = False,
    wait: float = 1.0,
) -> list[Got]:
    """Get missing sets, and missing parts of others that they need."""
    wanted: dict[str, set[str]] = {}
    for name in names:
        manifest = read_manifest(name, manifests)
        for need in manifest.needs:
            wanted.setdefault(need.set, set()).update(need.parts)
        wanted.setdefault(name, set()).update(one.brings for one in manifest.downloads)
    root.mkdir(parents=True, exist_ok=True)
    (root / DOWNLOADS).mkdir(exist_ok=True)
    refusal = f"Another cairn data get is at work in {root}: wait until it has ended."
    with lock_file(root / DOWNLOADS / "lock", refusal):
        one_by_one = _Getting(root, progress, manifests, keep_archives, wait)
        return [one_by_one.get(name, parts) for name, parts in wanted.items()]


@dataclass
class _Getting:
    root: Path
    progress: Progress
    manifests: Path | None
    keep_archives: bool
    wait: float

    def get(self, name: str, parts: set[str]) -> Got:
        manifest = read_manifest(name, self.manifests)
        got = Got(check(name, self.root, self.manifests), parts)
        lacking = [one for one in manifest.downloads if one.brings in parts and got.finding.lacks(one.brings)]
        folder, home = self.root / DOWNLOADS / name, self._home(manifest)
        for into in dict.fromkeys(one.into for one in lacking):
            staged = folder / "unpacked"
            shutil.rmtree(staged, ignore_errors=True)
            for download in (one for one in lacking if one.into == into):
                fetched = self._fetch(download, folder)
                got.files += [
                    {"file": one.path.name, "address": one.address, "sha256": one.sha256}
                    for one in fetched
                    if one.address is not None
                ]
                self._unpack(download, [one.path for one in fetched], staged)
            (home / into).parent.mkdir(parents=True, exist_ok=True)
            fill_up(staged, home / into)
        if lacking:
            got.finding = check(name, self.root, self.manifests)
        if got.done and not self.keep_archives:
            shutil.rmtree(folder, ignore_errors=True)
        return got

    def _home(self, manifest: Manifest) -> Path:
        """The folder of the set: an existing one, even if incomplete, or the target of a download."""
        try:
            folder = locate(manifest.name, self.root).folder
        except CairnError:
            return self.root / manifest.home
        return folder.parent if manifest.name.startswith("hpatches") and folder != self.root else folder

    def _fetch(self, download: Download, folder: Path) -> list[Fetched]:
        fetched = []
        volumes = download.volumes()
        for number, (file, addresses) in enumerate(volumes):

            def tell(done: int, of: int, number: int = number) -> None:
                # The size is only known for this volume: assume equal volumes.
                each = max(of, download.about_bytes or 0, done)
                self.progress("download", *(-(-size // _MB) for size in (number * each + done, each * len(volumes))))

            fetched.append(fetch(file, addresses, folder, tell, wait=self.wait))
        return fetched

    def _unpack(self, download: Download, files: list[Path], staged: Path) -> None:
        """Unpack a file into the staging folder of the set, or copy it if it is no archive."""
        if download.unpacked_limit is None:
            if download.file.endswith(".pkl"):
                _check_pickle(files[0])
            staged.mkdir(exist_ok=True)
            shutil.copyfile(files[0], staged / files[0].name)
            return
        whole = staged.with_name("unpacked-one")
        shutil.rmtree(whole, ignore_errors=True)
        try:
            if len(files) > 1:
                unpack_volumes(files[0], whole, download.unpacked_limit, strip=download.strip)
            else:
                tell = partial(self.progress, "unpack")
                unpack(files[0], whole, download.unpacked_limit, tell, strip=download.strip)
        except BadArchive as error:
            raise _kept_aside(files, error) from error
        fill_up(whole, staged)


def _check_pickle(file: Path) -> None:
    """Refuse a file that is no pickle of plain data, such as an error page of a server."""
    try:
        read_pickle(file)
    except CairnError as error:
        raise _kept_aside([file], error) from error


def _kept_aside(files: list[Path], error: CairnError) -> CairnError:
    for file in files:
        file.replace(file.with_name(f"{file.name}.bad"))
    sentence, aside = str(error).rstrip("."), f"{files[0].name}.bad"
    return CairnError(f"{sentence}; it is kept as {aside}, and the same command downloads it again.")


def fill_up(source: Path, target: Path) -> None:
    """Move files that another folder lacks, or has empty, from a folder into it, and remove the first."""
    if not target.exists():
        _move(source, target)
        return
    for path in sorted(source.iterdir()):
        there = target / path.name
        if path.is_dir() and there.is_dir():
            fill_up(path, there)
        elif not there.exists() or (there.is_file() and not there.stat().st_size and path.is_file()):
            _move(path, there)
    shutil.rmtree(source)


def _move(source: Path, target: Path) -> None:
    """Move a file or a folder atomically, also to another disk."""
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        temporary = target.with_name(f".{target.name}.moving")
        if temporary.is_dir():
            shutil.rmtree(temporary)
        shutil.move(source, temporary)
        temporary.replace(target)
