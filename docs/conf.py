"""The site: ``python -m sphinx -W --keep-going -n docs docs/_build/html``."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "extensions"))
sys.path.insert(0, str(HERE.parent))

import cosim  # noqa: E402

project = "cosim"
author = "the authors of cosim"
project_copyright = "the authors of cosim"
release = version = cosim.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "gallery_pages",  # docs/extensions
    "reference_pages",
    "command_pages",
    "file_names",
    "glossary_links",
    "limit_pages",
    "public_names",
]
exclude_patterns = ["_build", "changes", "extensions"]
suppress_warnings = ["myst.strikethrough"]

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
autodoc_default_options = {"exclude-members": "model_config, model_post_init"}
toc_object_entries = False
napoleon_google_docstring = False
napoleon_use_rtype = False

# Names of other projects and of cosim's inside, which have no page here.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!cosim(\.[A-Z]\w+)?$|cosim\.(plugins|testing)\b).*"),
]

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = "cosim"
html_search_scorer = str(HERE / "scorer.js")
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sphinx = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0072B2",
        "color-brand-content": "#0063a0",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif",
        "font-stack--monospace": "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#56B4E9",
        "color-brand-content": "#6cbef0",
    },
}
