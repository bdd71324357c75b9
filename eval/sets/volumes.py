"""RAR archives in volumes, as of Flickr100K, unpacked by unrar or 7z."""

import os
import shutil
import subprocess
from pathlib import Path

from eval.sets.unpacking import DamagedArchive, HostileArchive, check_name, whole_folder
from index.errors import CairnError
from index.text import shown

_TOOLS = ("unrar", "7z", "7zz")


def unpack_volumes(first: Path, folder: Path, limit: int, *, strip: bool = False) -> None:
    """Unpack a RAR archive by its first volume, under the rules of `unpacking`."""
    tool = next((path for name in _TOOLS if (path := shutil.which(name))), None)
    if tool is None:
        raise CairnError(
            f"{first.name} is a RAR archive: install unrar or 7z (such as apt install unrar), then run the same "
            "command again; nothing is downloaded twice."
        )
    rar = Path(tool).name == "unrar"
    listing = _run(first, tool, *(("lb",) if rar else ("l", "-slt", "-ba")), "--", str(first))
    names = listing.splitlines()
    if not rar:
        names = [line.removeprefix("Path = ") for line in names if line.startswith("Path = ")]
    for name in names:
        check_name(first, name)
    with whole_folder(folder, strip=strip) as temporary:
        if rar:
            _run(first, tool, "x", "-o+", "-idq", "-p-", "--", str(first), f"{temporary}/")
        else:
            _run(first, tool, "x", "-y", "-bd", f"-o{temporary}", "--", str(first))
        _check_tree(first, temporary, limit)


def _run(first: Path, *command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        reason = shown(last[0]) if last else f"exit code {done.returncode}"
        raise CairnError(
            f"{Path(command[0]).name} cannot read {first.name} and its other volumes ({reason}): remove the one that "
            f"is damaged from {first.parent}, and run the same command again."
        )
    return done.stdout


def _check_tree(first: Path, folder: Path, limit: int) -> None:
    """Refuse output of the tool that is neither file nor folder, too large, or empty."""
    size = count = 0
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(above) / name
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise HostileArchive(first, f"has {shown(name)}, which is neither a file nor a folder")
        size += sum((Path(above) / name).stat().st_size for name in files)
        count += len(files)
    if size > limit:
        raise HostileArchive(first, f"unpacks to more than the {limit:,} bytes that are declared")
    if not count:
        raise DamagedArchive(first, "it holds no file")
