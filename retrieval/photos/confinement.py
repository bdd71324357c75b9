"""Sandboxing: a process irrevocably gives up its rights to open, change or run anything, and to reach other processes.

Landlock (Linux 5.13) denies access to all files. It does not cover changes of modes, owners, times and attributes, and
early versions neither truncation nor signals to other processes: a filter of system calls (seccomp) denies these. A
limit of open files prevents new sockets and, without Landlock, opening files.
"""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import struct
import sys

# linux/landlock.h, linux/prctl.h and linux/capability.h. These system calls have one number on all processors.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION = 1
_SET_NO_NEW_PRIVS, _SET_PDEATHSIG, _SET_SECCOMP = 38, 1, 22
_ACCESS_FS = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 5: 1 << 16}  # by version: the largest set of rights plus one
_TCP, _SCOPES = 0b11, 0b11
_CAPABILITIES_3 = 0x20080522
# linux/seccomp.h and linux/filter.h: load, compare and return.
_FILTER, _LOAD, _EQUAL, _AT_LEAST, _ANSWER = 2, 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
# By processor: its number in linux/audit.h, and the calls that change modes, owners, times and attributes of files, cut
# them off, end or trace processes, or make sockets.
_CALLS = {
    "x86_64": (
        0xC000003E,
        (
            *(41, 62, 76, *range(90, 95), 101, 129, 132, *range(188, 191), *range(197, 201)),
            *(234, 235, 260, 261, 268, 280, 297),
        ),
    ),
    "aarch64": (
        0xC00000B7,
        (5, 6, 7, 14, 15, 16, 45, *range(52, 56), 88, 117, *range(129, 132), 138, 198, 240),
    ),
}
# pidfd_send_signal, fchmodat2, setxattrat, removexattrat and file_setattr: the same on all processors.
_LATER_CALLS = (424, 452, 463, 466, 469)
_OTHER_CALLS = 0x40000000  # from here on: calls of another interface


def landlock_version() -> int:
    """Version of this system's Landlock interface; 0 without Landlock."""
    if sys.platform != "linux":
        return 0
    with contextlib.suppress(OSError, AttributeError):
        return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION))))
    return 0


def can_give_up_all() -> bool:
    """Whether this system can enforce all restrictions of `give_up_rights`."""
    return landlock_version() > 0 and platform.machine() in _CALLS


def give_up_rights() -> None:
    """Keep this process from opening, changing and running anything; open files stay open. It ends with its parent.

    As far as the system supports it: see `can_give_up_all`. Only the calling thread, and threads that it starts later,
    give up their rights. Linux only.
    """
    import resource

    libc = _libc()
    if libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) or libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "rights cannot be given up")
    if version := landlock_version():
        _take_files_away(libc, version)
    _take_calls_away(libc)
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))
    # Last: capabilities of root, which limits do not cover.
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")


def _take_files_away(libc: ctypes.CDLL, version: int) -> None:
    """Let Landlock forbid everything that it can."""
    files = max(bits for since, bits in _ACCESS_FS.items() if since <= version) - 1
    rules = (ctypes.c_uint64 * 3)(files, _TCP, _SCOPES)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = libc.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(size), ctypes.c_uint(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "Landlock has no rules")
    if libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)):
        raise OSError(ctypes.get_errno(), "Landlock restricts nothing")
    os.close(ruleset)


def _take_calls_away(libc: ctypes.CDLL) -> None:
    """Let the system refuse calls in `_CALLS`; does nothing on other processors."""
    if platform.machine() not in _CALLS:
        return
    processor, calls = _CALLS[platform.machine()]
    calls += _LATER_CALLS
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 0, len(calls) + 2, processor), (_LOAD, 0, 0, 0)]
    steps += [(_AT_LEAST, len(calls), 0, _OTHER_CALLS)]
    steps += [(_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    steps += [(_ANSWER, 0, 0, _ALLOW), (_ANSWER, 0, 0, _REFUSE)]
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(steps), ctypes.addressof(held))  # struct sock_fprog
    libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0)  # ignore kernels without seccomp


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
