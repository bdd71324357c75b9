"""`as_published`: all of a paper's choices at once; explicit arguments take precedence."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from learning.mining.mining import MiningOptions

Choices = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Maps the values of all options to the paper's values of some of them."""

BROWN11 = "Brown11"
SIMONYAN14 = "Simonyan14"
TRZCINSKI12 = "Trzcinski12"
YAN13 = "Yan13"

_INLIERS = 51  # "larger than a threshold (set to 50)": section 9 of Simonyan14

Given = ParamSpec("Given")
Result = TypeVar("Result")


def published(choices: Choices) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Decorate a function with a parameter `as_published`: missing keywords take a paper's choices."""

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        signature = inspect.signature(function)

        @wraps(function)
        def called(*args: Given.args, **named: Given.kwargs) -> Result:
            if named.get("as_published"):
                values = signature.bind(*args, **named)
                values.apply_defaults()
                named.update({name: value for name, value in choices(values.arguments).items() if name not in named})
            return function(*args, **named)

        return called

    return decorate


# Of Simonyan14. The paper tries unspecified values of μ₁, μ* and γ. Ours are in units that suit any data
# (`ring_selection.WeightUnits`, `projection.MetricUnits`), and cover all dimensions of figure 3.
_POOLED = {"quantile": 0.8, "power": 1.0, "balanced": False, "keep": 0.0, "symmetric": True, "pool_step": 0.5}
_POOLING_GRID = {
    "mu": [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05],
    "gamma": [0.001, 0.003, 0.01, 0.03],  # small, as there are many rings: 0.1 leaves thousands of dimensions
}
_PROJECTION_GRID = {
    "projection_mu": [0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001],
    "projection_gamma": [0.03, 0.1],
}


def of_descriptors(values: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of Simonyan14 for pooling regions and projections: of section 10.1, or without labels of 9 and 10.2."""
    from index.errors import CairnError
    from learning.library.choices import is_unlabelled

    if values["stage"] == "whitening":
        raise CairnError("{--as-published} learns pooling regions and projections: the paper has no whitening.")
    unlabelled = is_unlabelled(values["sources"])
    pooled = values["base"] in (None, "pooled")
    has_pooling = values["pooling"] is not None  # pooling regions, and their patches
    stage = values["stage"] or ("both" if pooled and not has_pooling else "projection")
    choices: dict[str, Any] = {"stage": stage}
    if pooled and not has_pooling:
        choices |= _POOLED
    if stage in ("both", "pooling"):
        choices |= _POOLING_GRID if not unlabelled else {"mu": _POOLING_GRID["mu"][5:], "gamma": [0.01]}
    if stage != "pooling" and not unlabelled:
        choices |= _PROJECTION_GRID
    if unlabelled:
        # Patches of 31 x 31 (section 4: N = 4,650). N(x) is a whole photo: its nearest features are searched until
        # the model no longer improves.
        choices |= {"samples": 100_000, "rounds": 6, "alternations": 10}
        return choices if values["sources"][0].suffix == ".npz" else {**choices, "geometry": "homography"}
    return {**choices, **({"patch_size": 64} if pooled and not has_pooling else {}), "augment": 0}


def of_mining(values: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of Simonyan14 for matches of photos (sections 9 and 10.2.2); the paper has no rendered views."""
    dog = values["detector"] in (None, "dog-affine")  # other detectors have their own scale
    return {
        "geometry": "homography",
        **({"propose": "random"} if values["geometry"] != "views" else {}),
        "inliers": _INLIERS,
        "model": "affine",
        "descriptor": "sift",
        "detector": "dog-affine",
        "measurement_scale": 12.5 if dog else None,
        "extent": 1.0,
        "upright": True,
        "max_side": 0,
    }


def published_mining(options: "MiningOptions") -> "MiningOptions":
    """Choices of Simonyan14 for mining; the regions stay the collection's."""
    from dataclasses import replace

    return replace(
        options,
        propose="random" if options.geometry != "views" else None,
        descriptor="sift",
        extent=1.0,
        map=replace(options.map, inliers=_INLIERS, model="affine", strongest=0),
    )


def of_blocks(values: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of Brown11; Powell's method ends when the area hardly changes (section IV)."""
    return {"centre": False, "patch_size": 64, **({"evaluations": 10_000} if values["powell"] else {})}


def of_boosting(values: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of Trzcinski12; see `usual_comparison` for the comparison."""
    choices: dict[str, Any] = {
        "offset": False,
        "positive": False,
        "form": "inner",
        "keep": "eigenvalues",
        "scale": 1.0,
        "step": 0.005,
    }
    if values["start"] is None:
        choices |= {"learners": 512, "smoothing": 0.0, "patch_size": 64}
        if values["kind"] != "ssc":
            choices |= {"orientations": 24, "floor": 0.001}
    return choices


def of_embeddings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of Brown11 for a projection of SIFT."""
    return {"centre": False}


def usual_comparison(kind: str, form: str, keep: str, *, as_published: bool) -> str:
    """Default comparison of boosted descriptors: the paper's if all related options are."""
    signed = kind in ("lbgm", "lbgm-diag") and (form, keep) == ("inner", "eigenvalues")
    return "inner" if as_published and signed else "distance"
