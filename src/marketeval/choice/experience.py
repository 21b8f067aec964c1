"""What a wave of outcomes does to the users: utility, trust, learning, and the wish to leave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketeval.choice import character as c
from marketeval.choice.preference import learn
from marketeval.choice.utility import reliability, utility
from marketeval.core.compiled import inline, kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@inline
def experience_one(
    character: Floats,
    user: int,
    agent: int,
    quality: float,
    quality_signal: float,
    cost: float,
    latency: float,
    first: Floats,
    second: Floats,
    successes: Floats,
    trials: Floats,
    mood: Floats,
    discontent: Integers,
) -> tuple[float, float]:
    """One user's outcome: signal and utility; `first` and `second` are the user's row."""
    trust = 0.5
    if trials.shape[0] > 0:
        trust = reliability(successes[user, agent], trials[user, agent])
        successes[user, agent] += quality
        trials[user, agent] += 1.0
    alpha, beta = character[c.ALPHA], character[c.BETA]
    gamma, delta = character[c.GAMMA], character[c.DELTA]
    signal = utility(quality_signal, cost, latency, trust, alpha, beta, gamma, delta)
    worth = utility(quality, cost, latency, trust, alpha, beta, gamma, delta)
    if signal != signal:  # a cost or latency that counts is unknown
        return signal, worth
    learn(
        int(character[c.LEARNING]),
        first,
        second,
        agent,
        signal,
        character[c.RATE],
        character[c.FLOOR],
        character[c.FORGETTING],
        character[c.PRIOR],
    )
    if mood[user] == mood[user]:
        mood[user] += character[c.MOOD_RATE] * (worth - mood[user])
    else:
        mood[user] = worth
    discontent[user] = discontent[user] + 1 if mood[user] < character[c.LEAVES_BELOW] else 0
    return signal, worth


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
        signals[place], utilities[place] = experience_one(
            characters[segments[user]],
            user,
            agent,
            quality[place],
            quality_signal[place],
            cost[place],
            latency[place],
            first[rows[place]],
            second[rows[place]],
            successes,
            trials,
            mood,
            discontent,
        )
    return signals, utilities
