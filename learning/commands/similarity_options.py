"""Options of `cairn learn similarity` and `cairn evaluate similarity`: how a similarity is learnt."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from retrieval.commands.panels import DATA, MODEL, TUNING

if TYPE_CHECKING:
    from learning.similarity.options import SimilarityOptions

AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        rich_help_panel=TUNING,
        help="Learn as the paper does where that says how: no option has to be given for that, and one that is given "
        "wins.",
    ),
]


@dataclass(frozen=True)
class LearningChoices:
    """How a similarity is learnt; what is left out is as we choose it, or as the paper does."""

    iterations: Annotated[
        int | None, typer.Option(rich_help_panel=TUNING, help="Iterations, at most (default: 100).", min=1)
    ] = None
    margin: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Margin by which photos of an object are to come before others (default: 0.1; as published, where no "
            "number is stated: 0.01).",
        ),
    ] = None
    margin_on: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="cosine|similarity",
            help="What the margin parts: cosines (default), or the paper's normalised similarity, their square "
            "(default with --as-published).",
        ),
    ] = None
    smooth: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Width of the parabola that is the hinge's corner, in margins; 0: a corner (default: 0.5; as "
            "published: 0).",
            min=0,
        ),
    ] = None
    ridge_words: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=MODEL, help="Pull of words' weights to tf-idf (default: 1e-5; as published: 0).", min=0
        ),
    ] = None
    ridge_pairs: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=MODEL, help="Pull of pairs' weights to 0 (default: 1e-3; as published: 0).", min=0
        ),
    ] = None
    relative: Annotated[
        bool | None,
        typer.Option(
            "--relative/--absolute",
            rich_help_panel=TUNING,
            help="Descend in weights relative to tf-idf (default), or in the similarity matrix itself, which begins as "
            "tf-idf (default with --as-published).",
        ),
    ] = None
    full_every: Annotated[
        int | None,
        typer.Option(rich_help_panel=TUNING, help="Iterations between two looks at all triplets (default: 10).", min=1),
    ] = None
    patience: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Iterations that bring nothing on photos held out, after which it ends (default: 20; as published: "
            "100).",
            min=1,
        ),
    ] = None
    memory: Annotated[
        int | None, typer.Option(rich_help_panel=TUNING, help="Steps that L-BFGS-B remembers (default: 10).", min=1)
    ] = None
    triplets: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=DATA,
            metavar="N|all",
            help="Triplets of all queries, at most, half of them hard (default: 10000000; as published: 40000000).",
        ),
    ] = None
    hard: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=DATA,
            metavar="N|all",
            help="Hard triplets of a query, at most: those that tf-idf gets wrong (default: 20000; as published: all, "
            "up to an equal share of half of --triplets).",
        ),
    ] = None
    lower: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=DATA,
            metavar="N|all",
            help="Photos of the object below a wrong one that make hard triplets with it, at most (default: 50; as "
            "published: all).",
        ),
    ] = None
    random: Annotated[
        int | None, typer.Option(rich_help_panel=DATA, help="Random triplets of a query (default: 400).", min=0)
    ] = None
    hold_out: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Photos of each object, at most, that decide which iteration is taken (default: 4).",
            min=0,
        ),
    ] = None
    thirds: Annotated[
        bool | None,
        typer.Option(
            "--thirds/--no-thirds",
            rich_help_panel=TUNING,
            help="Hold out a third of an object's photos at most (default); or --hold-out of all objects that have "
            "more, and none of the others (default with --as-published).",
        ),
    ] = None
    refit: Annotated[
        bool | None,
        typer.Option(
            "--refit/--no-refit",
            rich_help_panel=TUNING,
            help="Learn again from the held-out photos too, for as many iterations (default); or take what did best on "
            "them (default with --as-published).",
        ),
    ] = None

    def settle(self, neighbours: int, seed: int, *, as_published: bool) -> "SimilarityOptions":
        """Options of the API; CairnError where a value makes no sense."""
        from learning.library.similarity_options import similarity_options

        return similarity_options(vars(self), neighbours=neighbours, seed=seed, as_published=as_published)
