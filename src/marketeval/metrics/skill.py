"""Skill ratings that follow games one by one, in the manner of TrueSkill, for many players.

The Plackett-Luce model of Weng and Lin (A Bayesian approximation method for online ranking, JMLR
2011) by the package openskill. A game ranks all its players at once, ties included. Unlike
`metrics.rating`, later games start from what earlier ones taught, so order matters a little.
"""

from __future__ import annotations

from collections.abc import Sequence

from marketeval.core.errors import UsageError
from marketeval.metrics.rating import Game, Rating


def skills(games: Sequence[Game]) -> list[Rating]:
    """Ratings, best first: mean of a player's skill (25 at the start) and 95 % of its belief.

    Raises UsageError without a game of two players, or without the package.
    """
    try:
        from openskill.models import PlackettLuce
    except ImportError:
        raise UsageError(
            "ratings by plackett-luce need a package: pip install 'marketeval[rating]'"
        ) from None
    if not any(len(game) > 1 for game in games):
        raise UsageError("expected games of at least two players to rate")
    model = PlackettLuce()
    known = {player: model.rating(name=player) for game in games for player in sorted(game)}
    for game in games:
        players = sorted(game)
        if len(players) > 1:
            teams = [[known[player]] for player in players]
            after = model.rate(teams, scores=[float(game[player]) for player in players])
            known.update({player: team[0] for player, team in zip(players, after, strict=True)})
    found = [
        Rating(
            player,
            one.mu,
            one.mu - 1.96 * one.sigma,
            one.mu + 1.96 * one.sigma,
            sum(player in game for game in games),
        )
        for player, one in known.items()
    ]
    return sorted(found, key=lambda one: (-one.rating, one.player))
