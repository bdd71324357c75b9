"""A Sphinx extension that writes equations as MathML, which browsers draw themselves: no script, no network."""

from typing import TYPE_CHECKING, Any

from docutils import nodes  # type: ignore[import-untyped]
from docutils.utils.math import latex2mathml  # type: ignore[import-untyped]
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def to_mathml(equation: str, *, as_block: bool = False) -> str:
    """Give an equation in LaTeX as MathML.

    Raises
    ------
    docutils.utils.math.MathError
        It holds what docutils does not know.
    """
    if as_block and r"\\" in equation and r"\begin" not in equation:
        equation = rf"\begin{{align}}{equation}\end{{align}}"
    return str(latex2mathml.tex2mathml(equation, as_block=as_block))


def visit_math(writer: Any, node: nodes.math) -> None:
    """Write an equation within a line."""
    writer.body.append(f'<span class="math">{to_mathml(node.astext())}</span>')
    raise nodes.SkipNode


def visit_math_block(writer: Any, node: nodes.math_block) -> None:
    """Write an equation of its own, with its number where it has one. It can be scrolled, also by the keyboard."""
    number = ""
    if node["number"]:
        number = f'<span class="eqno">({get_node_equation_number(writer, node)})</span>'
    writer.body.append(writer.starttag(node, "div", CLASS="math", tabindex="0", role="group"))
    writer.body.append(f"{number}{to_mathml(node.astext(), as_block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
