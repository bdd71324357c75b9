"""Who may read what is written: folders for their owner alone, or for whom the owner has given them to."""

import stat
from pathlib import Path


def make_folders(top: Path, *names: str) -> tuple[Path, int]:
    """Make a folder for its owner alone, where it is missing, and others in it, each with the rights of the first.

    Whatever the umask is. The rights of a folder that is there stay: whoever wants others to see what is in it changes
    those of the first.

    Parameters
    ----------
    top : Path
        The first.
    *names : str
        Plain names of folders, each in the one before.

    Returns
    -------
    folder : Path
        The last.
    mode : int
        Rights that a file in it is to have.

    Raises
    ------
    OSError
        One cannot be made; FileExistsError also where a link is in its place.
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
