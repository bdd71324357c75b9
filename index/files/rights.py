"""Permissions of new files and folders: for the owner alone, unless the owner has opened the top folder."""

import stat
from pathlib import Path


def make_folders(top: Path, *names: str) -> tuple[Path, int]:
    """Make a folder for its owner alone, if missing, and nested folders with the same permissions, whatever the umask.
    Return the last one, and the permissions for files. Raises OSError if one cannot be made, FileExistsError for a
    link.
    """
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(top.stat().st_mode)
    folder = top
    for name in names:
        folder = folder / name
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            if folder.is_symlink() or not folder.is_dir():
                raise
        else:
            folder.chmod(mode)
    return folder, mode & 0o666
