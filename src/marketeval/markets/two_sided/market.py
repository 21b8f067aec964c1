"""The two-sided marketplace: customers search, ask, compare and pay; businesses answer.

Rounds replace the reference's polling: in each, every active customer takes one decision, then
every business with new mail answers. Everybody is registered before the first decision, customers
and businesses go in the order of the data, and the round is the clock. What an action does and
whether it is refused is for `rules` to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from marketeval.core.log import EventKind, EventLog
from marketeval.core.market import Request, Script
from marketeval.core.streams import Streams
from marketeval.events import two_sided as events
from marketeval.markets.two_sided.floor import Floor
from marketeval.markets.two_sided.generator import generate
from marketeval.markets.two_sided.introduction import introduce
from marketeval.markets.two_sided.manipulation import manipulated
from marketeval.markets.two_sided.optimum import best_offers
from marketeval.markets.two_sided.population import Population, read_population
from marketeval.markets.two_sided.reputation import rated_anew
from marketeval.markets.two_sided.rules import Decide, decide
from marketeval.markets.two_sided.scenario import TwoSided


@dataclass(frozen=True, slots=True)
class FilledBy:
    """Who fills a seat: the short text of the agent, and whether it knows what it should not."""

    text: str
    privileged: bool = False


@dataclass(frozen=True, kw_only=True)
class TwoSidedMarket:
    """The rules of one market, ready to be played once per seed.

    `embedder` says that the seat of that name gives the vectors of searches by meaning. `decide`
    says what comes of an action: the rules themselves, or whoever asks them elsewhere.
    """

    spec: TwoSided
    population: Population
    filled_by: Mapping[str, FilledBy] = field(default_factory=dict)
    embedder: bool = False
    decide: Decide = field(default=decide, compare=False)
    events: ClassVar[Sequence[EventKind]] = events.KINDS

    def play(self, streams: Streams, log: EventLog) -> Script:
        """One episode: rounds until every customer has left, on each of the days."""
        if not log.has_shared("marketplace"):
            introduce(log, self.spec, self.population, self.filled_by)
        hints = self._hints
        population = self.population

        floor: Floor | None = None
        for day in range(self.spec.days):
            before, start = floor, day * self.spec.rounds
            floor = Floor(
                self.spec, population, streams, step=start, embedder=self.embedder,
                decide=self.decide,
            )  # fmt: skip
            if before is not None:
                floor.follow(before)

            for _ in range(self.spec.rounds):
                # Every active customer takes one decision.
                customers = floor.active()
                if not customers:
                    break
                decisions = yield [
                    floor.ask_customer(one, hints.get(one.profile.id)) for one in customers
                ]

                # What is searched for gets its vector, where an embedder is seated.
                texts = floor.unread(decisions)
                if texts:
                    vectors = yield [floor.ask_embedder(texts)]
                    floor.learn(texts, vectors[0])

                for one, decision in zip(customers, decisions, strict=True):
                    floor.carry_out(one, decision)

                # Every business with new mail answers each customer; what is no answer is asked
                # for again, and the customer is told if none comes.
                letters, silent = floor.letters(), []
                while letters:
                    requests: list[Request] = [floor.ask_business(one) for one in letters]
                    answers = yield requests
                    waiting = [
                        letter
                        for letter, answer in zip(letters, answers, strict=True)
                        if not floor.answer(letter, answer)
                    ]
                    silent += [one for one in waiting if one.asked >= self.spec.attempts]
                    letters = [one for one in waiting if one.asked < self.spec.attempts]
                floor.give_up(silent)
                floor.pages.write(log)
                floor.tick()

            for one in floor.active():
                floor.leave(one, "out_of_rounds")
            if day + 1 < self.spec.days:
                population = rated_anew(floor, population, self.spec.learning)
            floor.pages.write(log)

    @cached_property
    def _hints(self) -> Mapping[str, str | None]:
        """For privileged seats: the business of each customer's best purchase, None if none."""
        if not any(one.privileged for one in self.filled_by.values()):
            return {}
        return best_offers(self.population)


def populate(spec: TwoSided) -> Population:
    """The population that a specification names, with its manipulations."""
    population = (
        generate(spec.generate) if spec.generate is not None else read_population(spec.population)
    )
    population = population.first(spec.customers, spec.businesses)
    for attack in spec.manipulation:
        population = manipulated(population, attack)
    return population
