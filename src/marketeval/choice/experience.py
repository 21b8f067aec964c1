"""What a wave of outcomes does to the users: utility, trust, learning, and the wish to leave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketeval.choice import character as c
from marketeval.choice.preference import learn
from marketeval.choice.utility import reliability, utility
from marketeval.core.compiled import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@kernel
def experience(
    characters: Floats,
    segments: Integers,
    users: Integers,
    rows: Integers,
    agents: Integers,
    counts: NDArray[np.bool_],
    quality: Floats,
    quality_signal: Floats,
    cost: Floats,
    latency: Floats,
    first: Floats,
    second: Floats,
    last: Integers,
    successes: Floats,
    trials: Floats,
    mood: Floats,
    discontent: Integers,
) -> tuple[Floats, Floats]:
    """Let each user of a wave learn from its outcome, in slot order.

    Arrays of one entry per interaction: users, rows, agents, counts (whether there was an
    outcome), quality, quality_signal, cost, latency. State: `first`, `second` of (rows, agents);
    `successes`, `trials` of (users, agents), or of (0, agents) where nobody minds trust; `last`,
    `mood`, `discontent` per user. Returns signal and utility; NaN where nothing was learned.
    """
    signals = np.full(users.size, np.nan)
    utilities = np.full(users.size, np.nan)
    for place in range(users.size):
        user, agent = users[place], agents[place]
        if agent < 0:
            continue
        last[user] = agent
        if not counts[place]:
            continue
        mine = characters[segments[user]]
        trust = 0.5
        if trials.shape[0] > 0:
            trust = reliability(successes[user, agent], trials[user, agent])
            successes[user, agent] += quality[place]
            trials[user, agent] += 1.0
        signals[place] = utility(
            quality_signal[place], cost[place], latency[place], trust,
            mine[c.ALPHA], mine[c.BETA], mine[c.GAMMA], mine[c.DELTA],
        )  # fmt: skip
        utilities[place] = utility(
            quality[place], cost[place], latency[place], trust,
            mine[c.ALPHA], mine[c.BETA], mine[c.GAMMA], mine[c.DELTA],
        )  # fmt: skip
        if signals[place] != signals[place]:  # a cost or latency that counts is unknown
            continue
        learn(
            int(mine[c.LEARNING]),
            first[rows[place]],
            second[rows[place]],
            agent,
            signals[place],
            mine[c.RATE],
            mine[c.FLOOR],
            mine[c.FORGETTING],
            mine[c.PRIOR],
        )
        if mood[user] == mood[user]:
            mood[user] += mine[c.MOOD_RATE] * (utilities[place] - mood[user])
        else:
            mood[user] = utilities[place]
        discontent[user] = discontent[user] + 1 if mood[user] < mine[c.LEAVES_BELOW] else 0
    return signals, utilities
