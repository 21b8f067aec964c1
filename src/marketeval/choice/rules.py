"""The choice rules by name, and what of a user's character a kernel needs to know.

A rule is one file: `score(worth, count, total, theta, code, step, slot)` says how attractive one
agent is to one user now; the user asks the agent with the highest score. It also names its one
parameter (theta) with default and range, and the kinds of learning whose state it can read.
"""

from __future__ import annotations

from types import ModuleType

from marketeval.core.registry import Registry

BUILT_IN = ("epsilon_greedy", "proportional", "logit", "ucb1", "thompson")
EPSILON_GREEDY, PROPORTIONAL, LOGIT, UCB1, THOMPSON = range(5)
OUTSIDE = 5  # the code of a rule from another package

RULES: Registry[ModuleType] = Registry(
    "choice rule",
    {name: f"marketeval.choice.{name}" for name in BUILT_IN},
    plural="choice_rules",
)
