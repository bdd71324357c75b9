"""Votes of all matches of a query with an index."""

import numpy as np
from numpy.typing import NDArray

from index.hamming.voting import SignedMatches, VotingOptions, count_votes, share_votes
from index.inverted import InvertedIndex


def vote(
    index: InvertedIndex, matches: SignedMatches, bits: int, options: VotingOptions, features: int = 0
) -> NDArray[np.float32]:
    """Count the votes of matches, and share them: see `count_votes` and `share_votes`."""
    counted = count_votes(index, matches, bits, options, features)
    return share_votes(index, counted, counted.totals)
