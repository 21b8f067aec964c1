"""The choice rules by name, and what of a user's character a kernel needs to know.

A rule is one file of this folder: `score(worth, count, total, theta, code, step, slot)` says how
attractive one agent is to one user now; the user asks the agent with the highest score. It also
names its one parameter (theta) with default and range, and the kinds of learning whose state it
can read. `RULES` finds it by its source text, so that listing names imports nothing. A rule with a
line of its own in `select.score_of` has its machine code kept between processes; any other is
compiled in each.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from marketeval.core.registry import Registry

BUILT_IN = ("epsilon_greedy", "proportional", "logit", "ucb1", "thompson")
EPSILON_GREEDY, PROPORTIONAL, LOGIT, UCB1, THOMPSON = range(5)
OUTSIDE = 5  # the code of a rule from another package

RULES: Registry[ModuleType] = Registry(
    "choice rule",
    {
        path.stem: f"{__package__}.{path.stem}"
        for path in sorted(Path(__file__).parent.glob("*.py"))
        if "\nLEARNING = " in path.read_text("utf-8")
    },
    plural="choice_rules",
)
