"""The site: Sphinx with the theme Furo. `make docs` builds it; nothing in it is loaded from a network."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "tools"))

from sphinx.util import logging  # noqa: E402

import manyways as mw  # noqa: E402
from examples import folder_of, pages_with_examples, pictures_of, try_page  # noqa: E402
from generated import api_page, commands_page, gallery_page  # noqa: E402

project, author, copyright = "manyways", "The manyways developers", "The manyways developers"
release = mw.__version__
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


NO_PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000003a7e9b55"
    "0000000a49444154789c63600000000200014873a4af0000000049454e44ae426082"
)
"""A PNG image of one pixel."""


def make_pages(app, config) -> None:
    """Runs all examples, which make the pictures, and writes the pages that are generated.

    Each example whose output differs from its page is a warning with the lines that differ; the site is built all the same.
    """
    made = HERE / "made"
    for page in pages_with_examples():
        folder = folder_of(page, made)
        wrong = try_page(page, folder).wrong if config.run_examples else []
        for line, text in wrong:
            logging.getLogger(__name__).warning(text, location=f"{page}:{line}")
        folder.mkdir(parents=True, exist_ok=True)
        for picture in pictures_of(page):
            if not config.run_examples or not (folder / picture).exists():
                (folder / picture).write_bytes(NO_PICTURE)
    (HERE / "reference" / "api.md").write_text(api_page())
    (HERE / "reference" / "commands.md").write_text(commands_page())
    only = tuple(filter(None, config.gallery_models.split(",")))
    (HERE / "gallery.md").write_text(gallery_page(made / "extra" / "gallery", only))


def setup(app) -> None:
    # The tests run examples and the gallery by themselves, in parallel, and build the site without them.
    app.add_config_value("run_examples", True, "env", [bool, str, int])
    app.add_config_value("gallery_models", "", "env", [str])
    app.connect("config-inited", make_pages)
