"""How a similarity is learnt: our choices, and those of the paper (Yan13)."""

from dataclasses import dataclass, field, replace

from index.errors import CairnError
from learning.similarity.problem import ObjectiveOptions
from learning.similarity.triplets import TripletOptions


@dataclass(frozen=True)
class SimilarityOptions:
    """What is learnt, and how long."""

    neighbours: int = 2  # k: nearest words that a word may mean the same as; 0: words' own weights alone
    iterations: int = 100  # of L-BFGS-B, at most
    full_every: int = 10  # iterations between two looks at all triplets, N of section IV.C
    patience: int = 20  # iterations without a better figure on held-out photos before it ends
    memory: int = 10  # steps that L-BFGS-B remembers
    relative: bool = True  # descend in R, what is learnt relative to tf-idf; False: in M = diag(idf) R diag(idf)
    hold_out: int = 4  # photos of each object, at most, that choose the iteration; 0: none, the last one counts
    thirds: bool = True  # hold out a third of an object's photos at most; False: of small objects none, see `hold_out`
    refit: bool = True  # learn again for the best number of iterations, from the held-out photos too
    seed: int = 0  # share of photos held out, and of triplets
    triplets: TripletOptions = field(default_factory=TripletOptions)
    objective: ObjectiveOptions = field(default_factory=ObjectiveOptions)

    def __post_init__(self) -> None:
        if self.neighbours < 0 or self.iterations < 1 or self.full_every < 1:
            raise CairnError("A similarity needs 0 neighbours or more, and an iteration at least.")
        if self.patience < 1 or self.memory < 1 or self.hold_out < 0:
            raise CairnError("Patience and memory are 1 or more, and photos that are held out 0 or more.")

    @staticmethod
    def as_published(seed: int = 0) -> "SimilarityOptions":
        """The choices of Yan13, sections III to V, and ours where it says none.

        The paper parts Ŝ of equation 3 by a hinge with a corner, pulls to nothing, descends in M, whose diagonal begins
        as tf-idf, takes all true positives below each false one, holds out four photos of every object that has more,
        looks at every iteration's figure on them and takes the best as it is. It states neither the margin γ, nor how
        many random triplets and iterations there are, nor N, nor which solver of Matlab's took what steps. That a
        query has no more hard triplets than its equal share of 20 million is ours: the paper's are 19.1 million in all,
        random ones among them.
        """
        return SimilarityOptions(
            neighbours=2,
            patience=100,
            relative=False,
            hold_out=4,
            thirds=False,
            refit=False,
            seed=seed,
            triplets=replace(TripletOptions(), lower=None, hard=None, total=40_000_000),
            objective=ObjectiveOptions(margin=0.01, power=2, smooth=0, ridge_diagonal=0, ridge_pairs=0),
        )
