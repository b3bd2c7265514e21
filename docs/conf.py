"""The documentation site, built by Sphinx with MyST.

``pip install '.[docs]' && sphinx-build -W docs docs/_build`` builds it.

Pages that repeat what the code states are written by ``generated.py`` each time the site is built.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import generated

from jaxscope import __version__

project = "jaxscope"
author = "the jaxscope developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "sphinx_book_theme"
html_title = "jaxscope"
html_extra_path = ["llms.txt"]
html_theme_options = {"show_navbar_depth": 1, "use_download_button": False}


def setup(app):
    app.connect("builder-inited", lambda app: generated.write(Path(app.srcdir)))
