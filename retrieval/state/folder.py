"""The state folder: data of a user of this machine, which never travels with a collection."""

import os
import stat
from pathlib import Path

from index.errors import CairnError

STATE = "CAIRN_STATE"
"""Environment variable that names the folder to take instead."""


def state_folder(*names: str) -> Path:
    """Return a folder (`names`, each in the one before) below this user's state folder; missing ones are created,
    private.

    The state folder is named by the variable `CAIRN_STATE`; else it is that of systemd for a service
    (`StateDirectory=`); else ``cairn`` in the user's own state folder, such as ``~/.local/state``. Raises CairnError if
    others may write to it.
    """
    folder = _base()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(folder)
        for name in names:
            folder = folder / name
            folder.mkdir(mode=0o700, exist_ok=True)
            _check(folder)
    except OSError as error:
        raise CairnError(
            f"The folder {folder} cannot be used ({error.strerror}), where Cairn keeps what is yours "
            f"alone, such as the list of its work: set {STATE} to a folder that you may write to."
        ) from None
    return folder


def _base() -> Path:
    named = os.environ.get(STATE)
    # systemd may name several.
    service = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    if named or service:
        return Path(named or service).absolute()
    import platformdirs

    return platformdirs.user_state_path("cairn", appauthor=False)


def _check(folder: Path) -> None:
    """Refuse a folder that another user may change, as its contents are trusted."""
    if not hasattr(os, "getuid"):
        return
    status = folder.stat()
    if status.st_uid != os.getuid():
        raise CairnError(f"The folder {folder} belongs to another user: set {STATE} to a folder of your own.")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CairnError(f"Others may write to the folder {folder}: run chmod 700 on it.")
