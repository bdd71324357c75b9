"""Who is next where several clients wait."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from retrieval.web.pool.turns import Turns


@dataclass(eq=False)
class Waiting:
    client: str


@given(clients=st.lists(st.sampled_from("abcd"), max_size=40), most=st.integers(1, 12))
def test_all_that_is_let_in_comes_out_in_turns_and_nothing_twice(clients: str, most: int) -> None:
    turns: Turns[Waiting] = Turns(most)
    given = [Waiting(client) for client in clients]
    refused = [one for one in map(turns.add, given) if one is not None]
    assert len(turns) == len(given) - len(refused) <= most
    taken = [turns.take() for _ in range(len(turns))]
    assert turns.take() is None
    assert {*map(id, taken), *map(id, refused)} == set(map(id, given)) and len(taken) + len(refused) == len(given)
    # A client's own come in their order, and between two of one client every other client that still waits has one.
    for client in set(clients):
        own = [one for one in taken if one is not None and one.client == client]
        assert own == [one for one in given if one in own]
    left = Counter(one.client for one in taken if one is not None)
    recent: list[str] = []
    for one in taken:
        assert one is not None
        if one.client in recent:
            between = recent[recent.index(one.client) + 1 :]
            assert {client for client, number in left.items() if number and client != one.client} <= set(between)
            recent = between
        recent.append(one.client)
        left[one.client] -= 1


@given(greedy=st.integers(1, 30), most=st.integers(2, 10))
def test_a_newcomer_is_let_in_at_the_cost_of_whoever_has_most(greedy: int, most: int) -> None:
    turns: Turns[Waiting] = Turns(most)
    for _ in range(greedy):
        turns.add(Waiting("greedy"))
    refused = turns.add(Waiting("modest"))
    assert refused is None if greedy < most else refused is not None and refused.client == "greedy"


def test_what_is_taken_out_waits_no_longer() -> None:
    turns: Turns[Waiting] = Turns(10)
    ones = [Waiting(client) for client in "aabc"]
    for one in ones:
        turns.add(one)
    assert turns.take_out(lambda one: one.client == "a") == ones[:2]
    assert [turns.take(), turns.take(), turns.take()] == [ones[2], ones[3], None]
