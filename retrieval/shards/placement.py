"""Which holder has which shards."""

import hashlib
from collections.abc import Sequence


def place_shards(shards: int, members: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Assign shards, ascending, to holders, about equally many to each. The same members always get the same shards,
    and few shards move when a member leaves or joins: a shard goes to the holder, not yet full, with the highest hash
    of both (rendezvous hashing; Thaler & Ravishankar, 1998).
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
