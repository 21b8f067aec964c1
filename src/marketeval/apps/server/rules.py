"""The rules of a served market from the command line."""

from __future__ import annotations

from pydantic import ValidationError

from marketeval.core.errors import ScenarioError, UsageError
from marketeval.markets.two_sided.switches import Rules, rules_from

OFFERS_LAST_S = 3600  # by the wall clock: models and people take their time


def parse_rules(text: str, *, logical: bool) -> Rules:
    """Rules from `strict`, `compatible`, or a preset and changes: `strict,stock=5,books=false`.

    By the wall clock a tick is a second, and the offers of strict rules last an hour.
    """
    preset, *changes = [part.strip() for part in text.split(",")]
    given: dict[str, object] = {"preset": preset}
    if preset == "strict" and not logical:
        given["offers_last"] = OFFERS_LAST_S
    for change in changes:
        name, sign, value = change.partition("=")
        if not sign:
            raise UsageError(f"--rules {text}: expected NAME=VALUE after the preset, got {change}")
        given[name] = None if value in ("null", "none") else value
    try:
        return Rules.model_validate(rules_from(given))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ScenarioError(f"--rules: {where}: {first['msg']} (got {first['input']!r})") from None
