"""A Sphinx extension that names empty header cells of tables for screen readers."""

from typing import TYPE_CHECKING, Any

from docutils import nodes  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def name_empty_headers(app: "Sphinx", document: Any, page: str) -> None:
    """Fill empty header cells of tables with a hidden word."""
    for head in document.findall(nodes.thead):
        for entry in head.findall(nodes.entry):
            if not entry.astext().strip():
                entry.clear()
                entry += nodes.paragraph("", "", nodes.inline("", "row", classes=["visually-hidden"]))


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-resolved", name_empty_headers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
