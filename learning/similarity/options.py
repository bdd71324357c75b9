"""Options of learning a similarity: our choices, and those of the paper (Yan13)."""

from dataclasses import dataclass, field, replace

from index.errors import CairnError
from learning.similarity.problem import ObjectiveOptions
from learning.similarity.triplets import TripletOptions


@dataclass(frozen=True)
class SimilarityOptions:
    """Options of learning."""

    neighbours: int = 2  # k: number of nearest words that may have the same meaning; 0: only weights of words
    iterations: int = 100  # most iterations of L-BFGS-B
    full_every: int = 10  # iterations between two passes over all triplets, N of section IV.C
    patience: int = 20  # iterations without improvement on held-out photos before it ends
    memory: int = 10  # memory of L-BFGS-B, in steps
    relative: bool = True  # descend in R, relative to tf-idf; False: in M = diag(idf) R diag(idf)
    hold_out: int = 4  # most held-out photos of each object; 0: none, the last iteration is taken
    thirds: bool = True  # hold out at most a third of an object's photos; False: none of small objects, see `hold_out`
    refit: bool = True  # learn again for the best number of iterations, including the held-out photos
    seed: int = 0  # seed of held-out photos and triplets
    triplets: TripletOptions = field(default_factory=TripletOptions)
    objective: ObjectiveOptions = field(default_factory=ObjectiveOptions)

    def __post_init__(self) -> None:
        if self.neighbours < 0 or self.iterations < 1 or self.full_every < 1:
            raise CairnError("A similarity needs 0 neighbours or more, and an iteration at least.")
        if self.patience < 1 or self.memory < 1 or self.hold_out < 0:
            raise CairnError("Patience and memory are 1 or more, and photos that are held out 0 or more.")

    @staticmethod
    def as_published(seed: int = 0) -> "SimilarityOptions":
        """The choices of Yan13, sections III to V, and ours if the paper states none.

        The paper uses a plain hinge on Ŝ of equation 3 without a ridge, descends in M, starting at a diagonal of
        tf-idf, takes all true positives below each false one, holds out four photos of every object that has more, and
        takes the best iteration on them. It does not state the margin γ, the numbers of random triplets and iterations,
        N, or the solver and its steps. The limit of hard triplets of a query, its equal share of 20 million, is ours:
        the paper has 19.1 million triplets in all, including random ones.
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
