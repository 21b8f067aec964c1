"""From a chart to an SVG that may stand inside a page, and to a PNG file."""

from __future__ import annotations

import re

import vl_convert

from marketeval.apps.report.charts import Picture, specification

SCALE = 1.8  # pixels of a PNG per unit of the chart
_ID = re.compile(r'(\bid="|url\(#|href="#)(?=[\w-])')


def draw(picture: Picture) -> str:
    """The chart as a stand-alone SVG."""
    return str(vl_convert.vegalite_to_svg(specification(picture), allowed_base_urls=[]))


def png(svg: str) -> bytes:
    """The picture's file."""
    return bytes(vl_convert.svg_to_png(svg, scale=SCALE))


def inline(svg: str, *, prefix: str, label: str) -> str:
    """The SVG as part of a page: ids that clash with no other picture's, a size that gives way.

    `label` must be escaped for an attribute already.
    """
    own = _ID.sub(rf"\1{prefix}-", svg)
    head, _, rest = own.partition(">")
    found = re.search(r'viewBox="[^"]*"', head)
    box = found[0] if found else ""
    return f'<svg class="picture" {box} role="img" aria-label="{label}">{rest}'
