"""A Sphinx extension that names what stands above the names of a table's rows, for those who listen to the page."""

from typing import TYPE_CHECKING, Any

from docutils import nodes  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def name_empty_headers(app: "Sphinx", document: Any, page: str) -> None:
    """Fill cells of table heads that are empty with a word that is not shown."""
    for head in document.findall(nodes.thead):
        for entry in head.findall(nodes.entry):
            if not entry.astext().strip():
                entry.clear()
                entry += nodes.paragraph("", "", nodes.inline("", "row", classes=["visually-hidden"]))


def setup(app: "Sphinx") -> dict[str, bool]:
    """Connect it."""
    app.connect("doctree-resolved", name_empty_headers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
