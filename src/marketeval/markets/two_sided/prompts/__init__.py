"""The words that seats of the two-sided market read, as versioned data beside this file."""

from __future__ import annotations

from functools import cache
from importlib import resources

VERSIONS = ("v1",)


@cache
def instructions(side: str, version: str) -> str:
    """The rules and the role of a side, `customer` or `business`."""
    return (resources.files(__name__) / f"{side}.{version}.txt").read_text("utf-8")
