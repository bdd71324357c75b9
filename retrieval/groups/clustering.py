"""Clusters of a graph that one wrong edge cannot join."""

from collections.abc import Mapping

Pair = tuple[int, int]


def cluster(links: Mapping[Pair, float], *, agreement: float = 0.3, fewest: int = 2) -> list[set[int]]:
    """Divide the nodes of a graph into clusters of two and more, the largest first. Edges are processed in the order of
    their ends' common neighbours, most first; the result does not depend on the order of `links`.

    Two clusters are merged if enough nodes of the smaller have an edge to the larger: the part `agreement` of them, and
    at least two. So a false edge between two groups does not merge them. A single node joins by edges to two nodes: a
    photo of two paintings does not merge their groups. `links`: strength of each edge, by its two nodes, ascending:
    ties in common neighbours are ordered by strength. `fewest`: fewest such nodes, and fewest nodes of the larger
    cluster at the other ends, for clusters that large.
    """
    neighbours: dict[int, set[int]] = {}
    for one, other in links:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    members = {node: {node} for node in neighbours}
    home = {node: node for node in neighbours}  # the cluster that a node is in
    waiting = sorted(links, key=lambda pair: (-_in_common(pair, neighbours), -links[pair], pair))
    refused: dict[Pair, Pair] = {}  # clusters that did not agree, and how many nodes they had then: they only grow
    while True:
        left = []
        for one, other in waiting:
            small, large = sorted((home[one], home[other]), key=lambda name: (len(members[name]), name))
            if small == large:
                continue
            sizes = len(members[small]), len(members[large])
            if refused.get((small, large)) == sizes or not _agree(
                members[small], members[large], neighbours, agreement, fewest
            ):
                refused[small, large] = sizes
                left.append((one, other))
                continue
            for node in members[small]:
                home[node] = large
            members[large] |= members.pop(small)
        if len(left) == len(waiting):
            break
        waiting = left  # edges that did not agree may do so now that other clusters were merged
    clusters = [cluster for cluster in members.values() if len(cluster) > 1]
    return sorted(clusters, key=lambda cluster: (-len(cluster), min(cluster)))


def _in_common(pair: Pair, neighbours: Mapping[int, set[int]]) -> float:
    """Part of the neighbours of two nodes, themselves included, that are neighbours of both (Jaccard's index)."""
    first, second = (neighbours[node] | {node} for node in pair)
    both = len(first & second)
    return both / (len(first) + len(second) - both)


def _agree(small: set[int], large: set[int], neighbours: Mapping[int, set[int]], agreement: float, fewest: int) -> bool:
    """Whether enough nodes of two clusters have edges to the other."""
    ends = [neighbours[node] & large for node in small]
    linked = sum(map(bool, ends))
    return linked >= max(min(fewest, len(small)), agreement * len(small)) and len(set().union(*ends)) >= min(
        fewest, len(large)
    )
