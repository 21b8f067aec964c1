"""Ratings over many games of few players each: Bradley and Terry's model (1952).

    P(a beats b) = s_a / (s_a + s_b)

A game with several players counts as all its pairs, a tie as half a win each way. Strengths are the
maximum of the likelihood with a prior of one drawn game against a player of strength 1, so that
they are finite however the games went; found by Newton's method on log strengths, where the
likelihood is concave, and shown on Elo's scale, 1500 + 400 log10 s, on which 400 points are odds of
ten to one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marketeval.core.errors import UsageError
from marketeval.core.streams import Streams
from marketeval.metrics.tables import Floats

Game = Mapping[str, float]  # what each player of one game scored


@dataclass(frozen=True, slots=True)
class Rating:
    """A player's rating, with a 95 % bootstrap interval over games (None with one game)."""

    player: str
    rating: float
    low: float | None
    high: float | None
    games: int


def strengths(wins: Floats, *, tolerance: float = 1e-10) -> Floats:
    """Strengths from wins[a, b], how often a beat b (halves for ties).

    With the prior, one player who won 3 of 3 games against another is not infinitely strong:

    >>> strengths(np.array([[0.0, 3.0], [0.0, 0.0]])).round(3)
    array([3.224, 0.31 ])
    """
    played = wins + wins.T
    won = wins.sum(axis=1) + 0.5
    logs: Floats = np.zeros(wins.shape[0])
    for _ in range(1000):
        chance = 1.0 / (1.0 + np.exp(logs[None, :] - logs[:, None]))
        prior = 1.0 / (1.0 + np.exp(-logs))
        slope = won - (played * chance).sum(axis=1) - prior
        bend = played * chance * (1.0 - chance)
        curvature = np.diag(bend.sum(axis=1) + prior * (1.0 - prior)) - bend
        move = np.linalg.solve(curvature, slope)
        largest = float(np.abs(move).max(initial=0.0))
        logs = logs + move / max(1.0, largest)  # at most one at a time, so that none overshoots
        if largest < tolerance:
            break
    return np.asarray(np.exp(logs))


def rate(games: Sequence[Game], *, resamples: int = 300) -> list[Rating]:
    """Ratings of all players of some games, best first.

    Raises UsageError without a game of two players.
    """
    players = sorted({player for game in games for player in game})
    if not any(len(game) > 1 for game in games):
        raise UsageError("expected games of at least two players to rate")
    pairs = np.stack([_wins(game, players) for game in games])
    points = _elo(pairs.sum(axis=0))
    low = high = None
    if len(games) > 1:
        stream = Streams(0)["ratings"]
        drawn = [
            _elo(pairs[stream.below(len(games), one, len(games))].sum(axis=0))
            for one in range(resamples)
        ]
        low, high = np.quantile(np.array(drawn), [0.025, 0.975], axis=0)
    found = [
        Rating(
            player,
            float(points[i]),
            None if low is None else float(low[i]),
            None if high is None else float(high[i]),
            sum(player in game for game in games),
        )
        for i, player in enumerate(players)
    ]
    return sorted(found, key=lambda one: (-one.rating, one.player))


def _wins(game: Game, players: Sequence[str]) -> Floats:
    score = np.array([game.get(player, np.nan) for player in players])
    ahead = score[:, None] > score[None, :]
    tied = (score[:, None] == score[None, :]) & ~np.eye(len(players), dtype=np.bool_)
    return np.asarray(ahead + 0.5 * tied)


def _elo(wins: Floats) -> Floats:
    return np.asarray(1500.0 + 400.0 * np.log10(strengths(wins)))
