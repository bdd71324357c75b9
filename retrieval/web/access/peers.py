"""Ask the kernel for the user of a connection on this machine (Linux only)."""

import contextlib
import ipaddress
import os
import socket
import struct
import sys
from functools import cache
from pathlib import Path

Address = tuple[str, int | None]
"""Host and port of one end of a connection."""

# From <linux/netlink.h>, <linux/sock_diag.h> and <linux/inet_diag.h>.
_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_HEADER = struct.Struct("=IHHII")  # length, type, flags, number, port
_ASKED = struct.Struct("=BBBxI")  # family, protocol, extensions, states
_ENDS = struct.Struct("!HH16s16s4x8s")  # ports, addresses, no interface, cookie
_TOLD = struct.Struct("=BBBB48sIIIII")  # family, state, timer, tries, ends, expiry, two queues, user, inode
_ALL_STATES, _ESTABLISHED, _ANY_COOKIE = 0xFFFFFFFF, 1, b"\xff" * 8
_UNMAPPED = Path("/proc/sys/kernel/overflowuid")


def connecting_user(client: Address, server: Address) -> int | None:
    """Return the number of the user (uid) whose process holds the other end of a connection of this machine.

    Parameters
    ----------
    client, server : (str, int)
        The two ends, as the server sees them.

    Returns
    -------
    int or None
        None if the kernel does not say: the other end is on another machine, it was closed meanwhile, or the user
        has no number here.

    Notes
    -----
    The kernel is asked by netlink (sock_diag(7)). A connection that its process has closed is root's to it; so only an
    established one that a process holds counts, which has an inode.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError, struct.error):
        found = [ipaddress.ip_address(host) for host, _ in (client, server)]
        hosts = [getattr(one, "ipv4_mapped", None) or one for one in found]
        family = socket.AF_INET if hosts[0].version == 4 else socket.AF_INET6
        ends = _ENDS.pack(client[1], server[1], hosts[0].packed, hosts[1].packed, _ANY_COOKIE)
        answer = _ask(_ASKED.pack(family, socket.IPPROTO_TCP, 0, _ALL_STATES) + ends)
        _, state, *_, user, inode = _TOLD.unpack_from(answer)
        if state == _ESTABLISHED and inode and user != _unmapped():
            return int(user)
    return None


def _ask(question: bytes) -> bytes:
    """Ask the kernel about one socket; raises OSError if it has none, or does not say."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as asking:
        asking.settimeout(1)
        asking.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 0, 0) + question)
        answer, (sender, _) = asking.recvfrom(4096)
    _, kind, *_ = _HEADER.unpack_from(answer)
    if sender != 0 or kind != _BY_FAMILY:
        raise OSError("there is no such socket")
    return answer[_HEADER.size :]


@cache
def _unmapped() -> int:
    """Number of the overflow user, which stands for all users unknown in this user namespace."""
    with contextlib.suppress(OSError, ValueError):
        return int(_UNMAPPED.read_text())
    return 65534


@cache
def kernel_tells() -> bool:
    """Whether the kernel reports users of connections, by asking about one of this process's own."""
    if sys.platform != "linux":
        return False
    with (
        contextlib.suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname(), timeout=5) as own,
    ):
        return connecting_user(own.getsockname(), listening.getsockname()) == os.geteuid()
    return False
