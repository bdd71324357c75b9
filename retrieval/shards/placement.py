"""Which holder has which shards."""

import hashlib
from collections.abc import Sequence


def place_shards(shards: int, members: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Assign shards to holders, to each about equally many.

    The same members always get the same shards, and when one leaves or joins, few others have to move: a shard
    goes to the holder of the highest hash of both (rendezvous hashing; Thaler & Ravishankar, IEEE/ACM Transactions on
    Networking, 1998) that is not full yet.

    Parameters
    ----------
    shards : int
        They are numbered from 0.
    members : sequence of str
        Names of the holders, in any order.

    Returns
    -------
    dict of str to tuple of int
        The shards of each holder that has one, ascending.
    """
    held: dict[str, list[int]] = {member: [] for member in sorted(members)}
    each, more = divmod(shards, len(held))  # this many have one more than the others
    for shard in range(shards):
        full = sum(len(some) > each for some in held.values()) == more
        chosen = max(
            (member for member, some in held.items() if len(some) < each + (not full)),
            key=lambda member: _hash(shard, member),
        )
        held[chosen].append(shard)
    return {member: tuple(some) for member, some in held.items() if some}


def _hash(shard: int, member: str) -> bytes:
    return hashlib.sha256(f"{shard} {member}".encode()).digest()
