"""What a process can no longer do once it has given up its rights."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from retrieval.photos.confinement import can_give_up_all
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems know no such thing")

TRIED = """
    import contextlib, ctypes, json, os, resource, signal, socket, sys
    from retrieval.photos.confinement import give_up_rights

    folder = sys.argv[1]
    reply = os.dup(1)
    known = open(folder + "/known")
    peer, other = socket.socketpair()
    abstract = socket.socket(socket.AF_UNIX)
    resource  # what is imported later cannot be
    tried = {
        "read": lambda: open(folder + "/known"),
        "write": lambda: open(folder + "/new", "w"),
        "truncate": lambda: os.truncate(folder + "/known", 0),
        "delete": lambda: os.unlink(folder + "/known"),
        "rename": lambda: os.rename(folder + "/known", folder + "/new"),
        "make a folder": lambda: os.mkdir(folder + "/new"),
        "link": lambda: os.link(folder + "/known", folder + "/new"),
        "make a link": lambda: os.symlink("known", folder + "/new"),
        "list": lambda: os.listdir(folder),
        "change a mode": lambda: os.chmod(folder + "/known", 0o777),
        "change an open file's mode": lambda: os.fchmod(known.fileno(), 0o777),
        "change times": lambda: os.utime(folder + "/known", (0, 0)),
        "own": lambda: os.chown(folder + "/known", os.getuid(), os.getgid()),
        "run": lambda: os.execv("/bin/true", ["true"]),
        "TCP": lambda: socket.create_connection(("127.0.0.1", 1), 1),
        "UDP": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "a socket of the machine": lambda: socket.socket(socket.AF_UNIX),
        "signal its parent": lambda: os.kill(os.getppid(), 0),
        "trace its parent": lambda: refused(ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0)),
        "raise its limits": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
        "read what is open": lambda: known.read(),
        "answer": lambda: peer.send(b"x"),
        "take memory": lambda: bytearray(64 << 20),
        "fork": lambda: os.fork() or os._exit(0),
    }

    def refused(code):
        if code == -1:
            raise OSError(ctypes.get_errno(), "")

    libc = ctypes.CDLL(None)
    give_up_rights()
    found = {}
    for name, one in tried.items():
        try:
            one()
            found[name] = True
        except (OSError, ValueError):
            found[name] = False
    import_of = json.dumps(found)
    os.write(reply, import_of.encode())
    os._exit(0)
"""

ALLOWED = {"read what is open", "answer", "take memory", "fork"}
NEED_ALL = {"truncate", "delete", "rename", "make a folder", "link", "make a link", "run"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("confined")
    (folder / "known").write_text("kept")
    (folder / "known").chmod(0o640)
    command = [sys.executable, "-c", textwrap.dedent(TRIED), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), folder


def test_a_process_without_rights_has_what_is_open_and_nothing_else(found: tuple[dict[str, Any], Path]) -> None:
    could, folder = found
    left = set() if can_give_up_all() else NEED_ALL
    assert {name for name, one in could.items() if one} - left == ALLOWED
    if not left:
        assert [path.name for path in folder.iterdir()] == ["known"]
        assert (folder / "known").read_text() == "kept"
        assert (folder / "known").stat().st_mode & 0o777 == 0o640
