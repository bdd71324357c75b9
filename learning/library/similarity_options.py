"""How a similarity is learnt, from what is asked for."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from index.errors import CairnError
from learning.similarity.options import SimilarityOptions

_WAYS = {"cosine": 1, "similarity": 2}
_SAME = ("iterations", "relative", "full_every", "patience", "memory", "hold_out", "thirds", "refit")
_OBJECTIVE = {"margin": "margin", "smooth": "smooth", "ridge_words": "ridge_diagonal", "ridge_pairs": "ridge_pairs"}


def similarity_options(
    asked: Mapping[str, Any], *, neighbours: int, seed: int, as_published: bool
) -> SimilarityOptions:
    """Give the options of learning; what is left out is as we choose it, or as the paper does.

    Parameters
    ----------
    asked : mapping of str to object
        Those of `learning.library.similarity.learn_similarity` that say how is learnt, None where they are not given.
    neighbours, seed
        See there.
    as_published : bool
        Whether what is left out is as the paper has it.

    Raises
    ------
    CairnError
        A value makes no sense.
    """
    from retrieval.commands.options import number_or_all

    base = SimilarityOptions.as_published() if as_published else SimilarityOptions()
    objective = {name: asked[option] for option, name in _OBJECTIVE.items()} | {"power": _power(asked["margin_on"])}
    triplets: dict[str, Any] = {
        name: number_or_all(f"--{option}", str(asked[option]))
        for name, option in (("total", "triplets"), ("hard", "hard"), ("lower", "lower"))
        if asked[option] is not None
    }
    if asked["random"] is not None:
        triplets["random"] = asked["random"]
    return replace(
        base,
        neighbours=neighbours,
        seed=seed,
        triplets=replace(base.triplets, **triplets),
        objective=replace(base.objective, **{name: one for name, one in objective.items() if one is not None}),
        **{name: asked[name] for name in _SAME if asked[name] is not None},
    )


def _power(margin_on: str | None) -> int | None:
    if margin_on is None:
        return None
    if margin_on not in _WAYS:
        raise CairnError(f"--margin-on is cosine or similarity, not {margin_on!r}.")
    return _WAYS[margin_on]
