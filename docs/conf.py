"""The site: Sphinx with the theme Furo. `make docs` builds it; nothing in it is loaded from a network."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "tools"))

from examples import run_page  # noqa: E402
from generated import api_page, commands_page, gallery_page  # noqa: E402

project, author, copyright = "manyways", "The manyways developers", "The manyways developers"
release = "0.2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "math_as_mathml"]
exclude_patterns = ["tools", "made", "pictures"]
html_theme, html_title = "furo", "manyways"
html_static_path, html_css_files = ["static"], ["site.css"]
html_extra_path = ["made/extra"]
html_show_sourcelink = html_copy_source = False
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_use_ivar = True
pygments_style, pygments_dark_style = "tango", "monokai"
nitpicky = False


def make_pages(app) -> None:
    """Runs all examples, which make the pictures, and writes the pages that are generated."""
    for page in sorted([*HERE.glob("tutorials/*.md"), *HERE.glob("howto/*.md")]):
        run_page(page, HERE / "made" / page.stem)
    (HERE / "reference" / "api.md").write_text(api_page())
    (HERE / "reference" / "commands.md").write_text(commands_page())
    (HERE / "gallery.md").write_text(gallery_page(HERE / "made" / "extra" / "gallery", rebuild=False))


def setup(app) -> None:
    app.connect("config-inited", lambda app, config: make_pages(app))
