"""A Sphinx extension that writes equations as MathML, which browsers draw themselves: no script, no network."""

import re
from html import escape
from typing import TYPE_CHECKING, Any

from docutils import nodes  # type: ignore[import-untyped]
from docutils.utils.math import MathError, latex2mathml  # type: ignore[import-untyped]
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx

logger = logging.getLogger(__name__)

_BARE = re.compile(r"(<mo>&ApplyFunction;</mo>)(?!\s*<mo[^>]*>\()")
"""Separator after the name of a function without brackets: ln 2."""


def to_mathml(equation: str, *, as_block: bool = False) -> str:
    """Convert an equation from LaTeX to MathML. Raises docutils.utils.math.MathError for unknown commands."""
    text = _BARE.sub(r'\1<mspace width="0.17em"></mspace>', latex2mathml.tex2mathml(equation, as_block=as_block))
    # The bars of norms would stretch with their neighbours, to different heights.
    return text.replace(">‖<", ' stretchy="false">‖<')


def _write(node: nodes.Node, *, as_block: bool = False) -> str:
    """Convert an equation of a page to MathML; an invalid one is kept as source, with a warning."""
    try:
        return to_mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("equation: %s", error, location=node)
        return f"<code>{escape(node.astext())}</code>"


def visit_math(writer: Any, node: nodes.math) -> None:
    """Write an equation within a line."""
    writer.body.append(f'<span class="math">{_write(node)}</span>')
    raise nodes.SkipNode


def visit_math_block(writer: Any, node: nodes.math_block) -> None:
    """Write a display equation, with its number if it has one. It can be scrolled, also by keyboard."""
    number = ""
    if node["number"]:
        number = f'<span class="eqno">({get_node_equation_number(writer, node)})</span>'
    writer.body.append(writer.starttag(node, "div", CLASS="math", tabindex="0", role="group"))
    writer.body.append(f"{number}{_write(node, as_block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
