"""Figures by the optional matplotlib, to be saved as plots or put into a report."""

import io
from typing import TYPE_CHECKING

from index.extras import require_matplotlib as require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches; by itself, so that no window system and no state of pyplot is touched."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def image_bytes(figure: "Figure", kind: str = "png", dpi: int = 120) -> bytes:
    """Return a figure as an image file: ``png``, or ``jpg`` where it shows photos. The same figure gives the same."""
    file = io.BytesIO()
    options = {"quality": 90} if kind == "jpg" else {}
    figure.savefig(file, format=kind, dpi=dpi, pil_kwargs=options)
    return file.getvalue()
