"""How Sphinx builds the site; `scripts/docs` runs it on what `scripts/documentation/staging.py` puts together."""

from typing import TYPE_CHECKING

from documentation.python_pages import hide_constructor, public_classes, resolve_public_name
from documentation.staging import DOCS, ROOT, has_gallery
from numpydoc.xref import DEFAULT_LINKS

from cairn import version as cairn_version

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Cairn"
copyright = "the authors of Cairn, BSD-3-Clause"  # the name that Sphinx asks for
version = release = cairn_version()

extensions = [
    "myst_parser",
    "numpydoc",
    "documentation.mathml",
    "documentation.table_headers",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["examples/**"]

# Every reference must lead somewhere. Types of other libraries do not: their pages are elsewhere, and nothing here is
# asked of the network.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!cairn\.).*")]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4  # named as code hosts name them
suppress_warnings = ["myst.header"]  # pages of the project may begin at any level

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings tell types with shapes and units
default_role = "py:obj"  # a name in single backticks; a link where it is public
numpydoc_show_class_members = False
# Types and errors of Cairn lead to their pages; all others, those of other libraries too, are words.
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {name: name for name in DEFAULT_LINKS} | {name: f"cairn.{name}" for name in public_classes()}
toc_object_entries_show_parents = "hide"

if has_gallery():
    from sphinx_gallery.sorting import ExplicitOrder

    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": str(DOCS / "gallery"),
        "gallery_dirs": "gallery",
        "filename_pattern": "/plot_",
        # From regions to what is learnt; those that are not named come last.
        "within_subsection_order": ExplicitOrder(
            [
                "plot_regions.py",
                "plot_patches.py",
                "plot_vocabulary.py",
                "plot_verification.py",
                "plot_box_search.py",
                "plot_turned_queries.py",
                "plot_query_expansion.py",
                "plot_groups.py",
                "plot_own_features.py",
                "plot_precision_recall.py",
                "plot_roc.py",
                "plot_dimensions.py",
                "plot_learnt_pooling.py",
                "plot_learnt_similarity.py",
                "*",
            ]
        ),
        "capture_repr": (),
        "remove_config_comments": True,
        "ignore_pattern": r"^(?!plot_).*\.py$",
        "copyfile_regex": r"sample_photos\.py$",
        "write_computation_times": False,
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_memory": False,
        "reference_url": {},
    }

highlight_language = "bash"  # of blocks that name none: commands
html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}  # light or dark, as the system is
html_title = "Cairn"
html_favicon = str(ROOT / "retrieval/web/static/cairn.svg")
html_math_renderer = "mathml"
html_static_path = [str(DOCS / "_static")]
html_css_files = ["cairn.css"]
html_js_files = [("cairn.js", {"defer": "defer"})]
html_search_scorer = str(DOCS / "_static/scorer.js")
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "Cairn"},
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_prev_next": False,
    "collapse_navigation": True,
    "show_toc_level": 2,
}


def setup(app: "Sphinx") -> None:
    """Connect what Sphinx asks while it builds."""
    app.connect("missing-reference", resolve_public_name)
    app.connect("autodoc-process-signature", hide_constructor)
