"""Figures with the optional matplotlib, for plots and reports."""

import io
from typing import TYPE_CHECKING

from index.extras import require_matplotlib as require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, without pyplot, so that no window system and no global state is used."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def image_bytes(figure: "Figure", kind: str = "png", dpi: int = 120) -> bytes:
    """Return a figure as an image file: ``png``, or ``jpg`` where it shows photos. The same figure gives the same."""
    file = io.BytesIO()
    options = {"quality": 90} if kind == "jpg" else {}
    figure.savefig(file, format=kind, dpi=dpi, pil_kwargs=options)
    return file.getvalue()
