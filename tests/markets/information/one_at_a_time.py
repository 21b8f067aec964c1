"""The default market again, slowly: plain Python, dictionaries, one interaction at a time.

Epsilon-greedy users under additive drift and agents with success rates. It shares nothing with
the package but the keyed numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from marketeval.core.streams import Streams


def simulate(
    seed: int,
    rates: Mapping[str, float],
    *,
    enters: Mapping[str, int] | None = None,
    users: int,
    per_step: int,
    horizon: int,
    pool: int,
    one_at_a_time: bool,
    epsilon: float = 0.2,
    drift: float = 0.1,
    floor: float = 0.01,
) -> tuple[list[tuple], list[dict[str, float]]]:
    """The interactions (step, slot, user, question, seat, explored, score) and last preferences."""
    streams = Streams(seed)
    late = {seat: step for seat, step in (enters or {}).items() if step}
    arrival = sorted(rates, key=lambda seat: late.get(seat, 0))  # configuration order decides ties
    early = sorted(seat for seat in rates if seat not in late)
    preferences = [{seat: 1.0 / len(early) for seat in early} for _ in range(users)]
    questions: list[int] = []
    passes = 0
    rows = []
    for step in range(horizon):
        for newcomer in sorted(seat for seat in late if late[seat] == step):
            for mine in preferences:
                known = len(mine)
                for seat in mine:
                    mine[seat] = mine[seat] * (known / (known + 1))
                mine[newcomer] = 1.0 / (known + 1)
        came = [int(u * users) for u in streams["users"].uniform(step, per_step)]
        wanted = []
        for _ in came:
            if not questions:
                questions = streams["questions"].permutation(passes, pool).tolist()
                passes += 1
            wanted.append(questions.pop(0))
        curious = streams["explore"].uniform(step, per_step)
        luck = {seat: streams[f"{seat}/choice"].uniform(step, per_step) for seat in rates}
        outcome = {seat: streams[f"{seat}/agent/outcome"].uniform(step, per_step) for seat in rates}

        def choose(slot: int, came=came, curious=curious, luck=luck) -> tuple[str, bool]:
            mine = preferences[came[slot]]
            if curious[slot] < epsilon:
                return max(mine, key=lambda seat: luck[seat][slot]), True
            top = max(mine.values())
            return next(seat for seat in arrival if mine.get(seat) == top), False

        def learn(slot: int, seat: str, score: float, came=came) -> None:
            mine = preferences[came[slot]]
            mine[seat] = max(floor, mine[seat] + drift * (2.0 * score - 1.0))
            total = 0.0
            for one in sorted(mine):
                total += mine[one]
            for one in mine:
                mine[one] = mine[one] / total

        choices = [] if one_at_a_time else [choose(slot) for slot in range(per_step)]
        for slot in range(per_step):
            seat, explored = choose(slot) if one_at_a_time else choices[slot]
            score = float(outcome[seat][slot] < rates[seat])
            learn(slot, seat, score)
            rows.append((step, slot, came[slot], wanted[slot], seat, explored, score))
    return rows, preferences
