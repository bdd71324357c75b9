"""Commands: plot weights, plot projections."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from eval.commands.options import Csv, Picture, write_figures
from retrieval.commands.console import print_json, say
from retrieval.commands.options import Json


def weights(
    descriptor: Annotated[list[Path], typer.Argument(help="Descriptor files (.npz) of cairn learn boosted.")],
    out: Picture,
    csv: Csv = None,
    json: bool = Json,
) -> None:
    """Draw where in a patch boosted learners look: the sum of their weights at each sample."""
    from numpy import ndenumerate

    from eval.learnt_maps import weight_map
    from eval.map_plots import plot_weight_maps
    from eval.plots import check_plot
    from retrieval.descriptors.learnt import load_model

    check_plot(out)
    maps = {str(path): weight_map(load_model(path)) for path in descriptor}
    rows = [
        {"descriptor": name, "x": x, "y": y, "weight": float(weight)}
        for name, weights_of_model in maps.items()
        for (y, x), weight in ndenumerate(weights_of_model)
    ]
    write_figures(csv, rows)
    _draw(plot_weight_maps, maps, "weights", out, json)


def projections(
    descriptor: Annotated[
        list[Path],
        typer.Argument(help="Descriptor files (.npz) of cairn learn blocks with a T-block alone."),
    ],
    out: Picture,
    first: Annotated[int, typer.Option(help="Projections of each, the first ones.", min=1, max=100)] = 10,
    csv: Csv = None,
    json: bool = Json,
) -> None:
    """Draw the first projections that embeddings of patches have learnt, each descriptor's in a row.

    Learn them with cairn learn blocks --blocks pixels-grid-32 --embedding lde --alpha 0.2, and with other --alpha.
    """
    from numpy import ndenumerate

    from eval.learnt_maps import projection_maps
    from eval.map_plots import plot_projections
    from eval.plots import check_plot
    from retrieval.descriptors.learnt import load_model

    check_plot(out)
    maps = {str(path): projection_maps(load_model(path), first) for path in descriptor}
    rows = [
        {"descriptor": name, "projection": number + 1, "y": y, "x": x, "channel": c, "value": float(value)}
        for name, maps_of_model in maps.items()
        for (number, y, x, c), value in ndenumerate(maps_of_model)
    ]
    write_figures(csv, rows)
    _draw(plot_projections, maps, "projections", out, json)


def _draw(draw: Callable[..., None], maps: Mapping[str, Any], what: str, out: Path, json: bool) -> None:
    """Draw the maps of some files, and print their values or the name of the picture."""
    draw({Path(name).stem: maps_of_model for name, maps_of_model in maps.items()}, out)
    if json:
        values = {name: maps_of_model.tolist() for name, maps_of_model in maps.items()}
        print_json({"picture": str(out), what: values})
        return
    say(str(out))
