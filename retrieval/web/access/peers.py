"""Which user of this machine a connection is of, by what the kernel says; Linux alone says it."""

import contextlib
import ipaddress
import os
import socket
import sys
from functools import cache
from pathlib import Path

Address = tuple[str, int | None]
"""Host and port of one end of a connection."""

_TABLES = ((4, Path("/proc/net/tcp")), (6, Path("/proc/net/tcp6")))
_ESTABLISHED = "01"
_UNMAPPED = Path("/proc/sys/kernel/overflowuid")


def connecting_user(client: Address, server: Address) -> int | None:
    """Give the number of the user (uid) whose process holds the other end of a connection of this machine.

    Parameters
    ----------
    client, server : (str, int)
        The two ends, as the server sees them.

    Returns
    -------
    int or None
        None where the kernel does not say: the other end is on another machine, it was closed meanwhile, or the user
        has no number here.

    Notes
    -----
    Rows of connections that their process has closed name root as the user; so only established ones that a process
    holds count (proc_pid_net(5): state 01, and an inode).
    """
    for version, table in _TABLES:
        ends = _written(client, version), _written(server, version)
        if None in ends:
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            _, found, rest = table.read_bytes().partition(f": {ends[0]} {ends[1]} {_ESTABLISHED} ".encode())
            if found:
                user, inode = (int(rest.split(b"\n", 1)[0].split()[place]) for place in (3, 5))
                return user if inode and user != _unmapped() else None
    return None


def _written(address: Address, version: int) -> str | None:
    """Write an end as the tables do: hexadecimal words of 32 bits in the machine's order; None where it cannot be."""
    try:
        found = ipaddress.ip_address(address[0])
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    if version == 4:
        found = mapped or found
        if found.version != 4:
            return None
    elif found.version == 4:  # a socket of IPv6 may hold a connection of IPv4
        found = ipaddress.ip_address(f"::ffff:{found}")
    packed = found.packed
    words = [int.from_bytes(packed[place : place + 4], sys.byteorder) for place in range(0, len(packed), 4)]
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1] or 0:04X}"


@cache
def _unmapped() -> int:
    """The user that all are in whose number means nothing in this user namespace."""
    with contextlib.suppress(OSError, ValueError):
        return int(_UNMAPPED.read_text())
    return 65534


@cache
def kernel_tells() -> bool:
    """Whether the kernel says of which user a connection is: it is asked about one of this process's own."""
    if sys.platform != "linux":
        return False
    with (
        contextlib.suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname(), timeout=5) as own,
    ):
        return connecting_user(own.getsockname(), listening.getsockname()) == os.geteuid()
    return False
