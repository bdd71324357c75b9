"""Commands: plot weights, plot projections."""

from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import print_json, say
from retrieval.commands.options import Json

Out = Annotated[Path, typer.Option(help="The picture to write: .png, .pdf or .svg.")]
Csv = Annotated[Path | None, typer.Option(help="Write the figures as a table (CSV) here, too.")]


def weights(
    descriptor: Annotated[list[Path], typer.Argument(help="Descriptor files (.npz) of cairn learn boosted.")],
    out: Out,
    csv: Csv = None,
    json: bool = Json,
) -> None:
    """Draw where in a patch boosted learners look: the sum of their weights at each sample."""
    from eval.csv_table import write_table
    from eval.learnt_maps import weight_map
    from eval.map_plots import plot_weight_maps
    from eval.plots import check_plot
    from retrieval.descriptors.learnt import load_model

    check_plot(out)
    maps = {str(path): weight_map(load_model(path)) for path in descriptor}
    if csv is not None:
        write_table(
            csv,
            [
                {"descriptor": name, "x": x, "y": y, "weight": float(weight_map_[y, x])}
                for name, weight_map_ in maps.items()
                for y in range(len(weight_map_))
                for x in range(len(weight_map_))
            ],
        )
    plot_weight_maps({Path(name).stem: weight_map_ for name, weight_map_ in maps.items()}, out)
    if json:
        print_json({"picture": str(out), "weights": {name: weight_map_.tolist() for name, weight_map_ in maps.items()}})
        return
    say(str(out))


def projections(
    descriptor: Annotated[
        list[Path],
        typer.Argument(help="Descriptor files (.npz) of cairn learn blocks with a T-block alone."),
    ],
    out: Out,
    first: Annotated[int, typer.Option(help="Projections of each, the first ones.", min=1, max=100)] = 10,
    csv: Csv = None,
    json: bool = Json,
) -> None:
    """Draw the first projections that embeddings of patches have learnt, each descriptor's in a row.

    Learn them with cairn learn blocks --blocks pixels-grid-32 --embedding lde --alpha 0.2, and with other --alpha.
    """
    from numpy import ndenumerate

    from eval.csv_table import write_table
    from eval.learnt_maps import projection_maps
    from eval.map_plots import plot_projections
    from eval.plots import check_plot
    from retrieval.descriptors.learnt import load_model

    check_plot(out)
    maps = {str(path): projection_maps(load_model(path), first) for path in descriptor}
    if csv is not None:
        write_table(
            csv,
            [
                {
                    "descriptor": name,
                    "projection": number + 1,
                    "y": y,
                    "x": x,
                    "channel": c,
                    "value": float(value),
                }
                for name, maps_of_model in maps.items()
                for (number, y, x, c), value in ndenumerate(maps_of_model)
            ],
        )
    plot_projections({Path(name).stem: maps_of_model for name, maps_of_model in maps.items()}, out)
    if json:
        print_json(
            {"picture": str(out), "projections": {name: maps_of_model.tolist() for name, maps_of_model in maps.items()}}
        )
        return
    say(str(out))
