"""Every shard has one holder, none has much more than another, and few move."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.shards.placement import place_shards

MEMBERS = st.sets(st.text("abcdef:0123", min_size=1, max_size=6), min_size=1, max_size=9)


@given(st.integers(0, 40), MEMBERS)
def test_shards_are_shared_evenly(shards: int, members: set[str]) -> None:
    placed = place_shards(shards, sorted(members))
    assert sorted(shard for some in placed.values() for shard in some) == list(range(shards))
    assert placed.keys() <= members
    sizes = [len(some) for some in placed.values()]
    assert max(sizes, default=0) <= -(-shards // len(members))
    if shards >= len(members):
        assert min(sizes) >= shards // len(members) and len(placed) == len(members)
    assert placed == place_shards(shards, sorted(members, reverse=True))


def test_few_shards_move_when_a_holder_goes() -> None:
    members = [f"tcp://host-{one}:4000" for one in range(8)]
    before, after = place_shards(64, members), place_shards(64, members[1:])
    stayed = sum(len(set(before[member]) & set(after[member])) for member in members[1:])
    assert stayed > 56 / 2
