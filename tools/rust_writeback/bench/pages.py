# SPDX-License-Identifier: GPL-2.0
"""Renders the pages of results from the templates beside this file."""

import re
from pathlib import Path
from typing import Any

import jinja2

from .. import tables

ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=jinja2.select_autoescape(),
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
)
ENVIRONMENT.globals["table"] = tables.markdown


def render(name: str, **values: Any) -> str:
    """The page; in Markdown, a paragraph of several lines becomes one line."""
    page = ENVIRONMENT.get_template(name).render(values)
    return re.sub(r"(?<=\S)\n(?=[^\n|#-])", " ", page) if name.endswith(".md") else page
