"""The trading floor: one episode's state and what each seat knows, under the rules of `rules`.

The script (`market`) says who is asked when; the floor carries out what they answer, hands out
mail, and writes every entry of the journal to the log's pages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from marketeval.actions import two_sided as act
from marketeval.actions.common import Vectors
from marketeval.core.market import Action, Failure, Request
from marketeval.core.streams import Streams
from marketeval.events.two_sided import ENDINGS
from marketeval.markets.two_sided import rules
from marketeval.markets.two_sided.briefing import business_text, customer_text
from marketeval.markets.two_sided.forms import business_form, customer_form
from marketeval.markets.two_sided.manipulation import disguises
from marketeval.markets.two_sided.pages import Pages
from marketeval.markets.two_sided.population import Population
from marketeval.markets.two_sided.prompts import instructions
from marketeval.markets.two_sided.scenario import TwoSided
from marketeval.markets.two_sided.state import Action as MarketAction
from marketeval.markets.two_sided.state import Entry, Found, Mail, Refused, Result, State
from marketeval.mechanisms.meaning import Meanings
from marketeval.mechanisms.search import DENSE

EMBEDDER = "embedder"  # the seat that turns texts into vectors
Told = str | act.Heard


@dataclass(slots=True)
class Shopping:
    """One customer's errand: what it has seen and done so far."""

    profile: act.Customer
    history: deque[Told]
    offers: deque[act.Heard]
    steps: int = 0
    seen: int = 0
    page: int = 0
    more: bool = False
    done: bool = False
    found: dict[str, act.Business] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    fresh: list[act.Business] = field(default_factory=list)
    in_prompt: Sequence[int] = ()


@dataclass(slots=True)
class Letter:
    """What a business has to answer: one customer's new texts, after an earlier conversation.

    `asked` is how often it was asked so far, `problem` what was wrong with its last answer.
    """

    business: str
    customer: str
    texts: Sequence[act.Heard]
    earlier: Sequence[act.Heard]
    problem: str = ""
    asked: int = 0


class Floor:
    """One episode. `step` is the round, the market's clock."""

    def __init__(
        self,
        spec: TwoSided,
        population: Population,
        streams: Streams,
        *,
        step: int = 0,
        embedder: bool = False,
        decide: rules.Decide = rules.decide,
    ) -> None:
        self.spec = spec
        self._decide = decide
        self.step = step
        self.pages = Pages()
        self.state = State(rules=spec.rules, now=step, order=spec.order, streams=streams)
        if embedder and spec.search in DENSE:
            self.state.meanings = Meanings()
        everybody: list[act.Profile] = [*population.businesses, *population.customers]
        for profile in everybody:
            self._apply(profile.id, act.Register(profile))
        self._streams = _Draws(streams)
        self.customers = [self._errand(one) for one in population.customers]
        self._number = {one.id: place for place, one in enumerate(population.businesses)}
        self._customer_text = partial(customer_text, longest=spec.briefing)
        self._business_text = partial(business_text, longest=spec.briefing)
        self._disguises = disguises(population, spec.manipulation)
        self._read: dict[str, int] = {}
        self._rung: dict[str, None] = {}
        self._talks: dict[tuple[str, str], deque[act.Heard]] = {}
        self._offers_made: dict[tuple[str, str], int] = {}

    def follow(self, day_before: Floor) -> None:
        """Go on with the books, the numbers and the proposal ids of the day before."""
        self.state.rows = day_before.state.rows
        self.state.accounts = day_before.state.accounts
        self.state.stock = day_before.state.stock
        self.state.used_ids = day_before.state.used_ids
        self.state.meanings = day_before.state.meanings
        self._offers_made = day_before._offers_made

    def tick(self) -> None:
        """The next round begins."""
        self.step += 1
        self.state.now = self.step

    def active(self) -> list[Shopping]:
        """The customers who are still shopping, in the order of the data."""
        return [one for one in self.customers if not one.done]

    # ---- customers

    def ask_customer(self, one: Shopping, hint: object) -> Request:
        """The request for a customer's next decision, with its new mail."""
        profile = one.profile
        mail: Sequence[act.Heard] = ()
        if self.state.mail(profile.id, one.seen):
            result = self._act(profile.id, act.FetchMessages(after_index=one.seen))
            mail = result.messages if isinstance(result, Mail) else ()
        if mail:
            one.seen = mail[-1].index
            one.history.extend(mail)
            one.offers.extend(m for m in mail if isinstance(m.message, act.OrderProposal))
        one.in_prompt = [heard.index for heard in one.offers]
        notices, one.notices = one.notices, []
        fresh, one.fresh = one.fresh, []
        briefing = act.CustomerBriefing(
            profile=profile,
            step=one.steps,
            steps=self.spec.steps,
            search_page=one.page,
            more_pages=one.more,
            found=tuple(one.found.values()),
            asked=frozenset(one.asked),
            offers=tuple(self._seen(heard) for heard in one.offers),
            history=tuple(one.history),
            write=self._customer_text,
        )
        return Request(
            seat=profile.id,
            decision="customer",
            action=act.CustomerAction,
            step=self.step,
            draws=self._streams[profile.id],
            instructions=instructions("customer", self.spec.prompts),
            briefing=briefing,
            news=act.News(
                mail, notices, fresh, f"Decision {one.steps + 1} of at most {self.spec.steps}."
            ),
            privileged=hint,
            schema=customer_form(briefing) if self.spec.forms == "known" else None,
        )

    def carry_out(self, one: Shopping, action: Action) -> None:
        """Do what a customer decided; what cannot be done becomes a notice to it."""
        one.steps += 1
        if isinstance(action, Failure):
            kind, reason, problems = "invalid", "", [action.reason]
        else:
            kind, reason = action.action_type, str(action.reason or "")
            problems = _faults_of_customer(action) or self._do(one, action)
            if kind not in _CUSTOMER_KINDS or (problems and kind != "send_messages"):
                kind = "invalid"
        for problem in problems:
            one.notices.append(problem)
            one.history.append(f"problem: {problem}")
        self.pages.decision(
            self.step, one.profile.id, "", one.steps, kind, reason, "; ".join(problems)
        )
        if not one.done and one.steps >= self.spec.steps:
            self.leave(one, "out_of_steps")

    def leave(self, one: Shopping, how: str) -> None:
        """A customer is done."""
        one.done = True
        self.pages.add("left", self.step, one.profile.id, one.steps, ENDINGS.index(how))
        for row in one.in_prompt:
            self.pages.add("in_last_briefing", one.profile.id, row)

    def _do(self, one: Shopping, action: act.CustomerAction) -> list[str]:
        """Carry out a well-formed decision; what was refused, in words."""
        if action.action_type == "search_businesses":
            return self._search(one, action.search_query or "", action.search_page)
        if action.action_type == "send_messages" and action.messages is not None:
            problems = [self._text(one, text) for text in action.messages.text_messages]
            problems += [self._pay(one, payment) for payment in action.messages.pay_messages]
            return [problem for problem in problems if problem]
        if action.action_type == "end_transaction":
            self.leave(one, "ended")
        return []

    def _search(self, one: Shopping, query: str, page: int) -> list[str]:
        search = act.Search(
            query=query,
            search_algorithm=self.spec.search,  # type: ignore[arg-type]  # checked by the spec
            limit=self.spec.limit,
            page=page,
        )
        result = self._act(one.profile.id, search)
        if isinstance(result, Refused):
            return [f"the search was refused: {result.words}"]
        assert isinstance(result, Found)  # what a search that is not refused gives
        latest = {hit.id: one.found.get(hit.id, hit) for hit in result.businesses}
        one.found = {**latest, **one.found}
        one.fresh.extend(result.businesses)
        one.notices.append(f"your search: page {page} of {result.pages}, {result.total} results")
        one.page, one.more = page, page < result.pages
        one.history.append(
            f"you searched for '{query}': page {page} of {result.pages}, {result.total} results"
        )
        return []

    def _text(self, one: Shopping, text: act.CustomerText) -> str:
        to = text.to_business_id
        result = self._send(one.profile.id, to, act.TextMessage(text.content))
        if isinstance(result, Refused):
            return f"your message to {to} was refused: {result.words}"
        one.asked.add(to)
        one.history.append(f"you wrote to {to}: {text.content}")
        return ""

    def _pay(self, one: Shopping, payment: act.CustomerPayment) -> str:
        """Pay the business that sent the proposal, whoever the decision names."""
        name = payment.proposal_message_id
        sellers = [heard.sender for heard in one.offers if getattr(heard.message, "id", "") == name]
        if not sellers:
            return f"you have received no proposal with the id {name}"
        message = act.Payment(
            proposal_message_id=name,
            payment_method=payment.payment_method,
            delivery_address=payment.delivery_address,
            payment_message=payment.payment_message,
        )
        result = self._send(one.profile.id, sellers[0], message)
        if isinstance(result, Refused):
            return f"your payment of {name} was refused: {result.words}"
        one.history.append(f"you paid proposal {name} of {sellers[0]}")
        return ""

    # ---- businesses

    def letters(self) -> list[Letter]:
        """The new mail of all businesses, in the order of the data; payments are confirmed."""
        letters: list[Letter] = []
        for business in sorted(self._rung, key=self._number.__getitem__):
            after = self._read.get(business, 0)
            result = self._act(business, act.FetchMessages(after_index=after))
            if not isinstance(result, Mail) or not result.messages:
                continue
            self._read[business] = result.messages[-1].index
            by_sender: dict[str, list[act.Heard]] = {}
            for heard in result.messages:
                by_sender.setdefault(heard.sender, []).append(heard)
            for customer, mail in by_sender.items():
                talk = self._talk(business, customer)
                earlier = tuple(talk)
                talk.extend(mail)
                for heard in mail:
                    if isinstance(heard.message, act.Payment):
                        self._confirm(business, customer, heard.message)
                texts = [one for one in mail if isinstance(one.message, act.TextMessage)]
                if texts:
                    letters.append(Letter(business, customer, texts, earlier))
        self._rung = {}
        return letters

    def ask_business(self, letter: Letter) -> Request:
        """The request for a business's answer to one customer."""
        profile = self.state.profiles[letter.business]
        assert isinstance(profile, act.Business)  # only businesses are rung
        briefing = act.BusinessBriefing(
            profile=profile,
            customer=letter.customer,
            conversation=(*letter.earlier, *letter.texts),
            problem=letter.problem,
            write=self._business_text,
        )
        return Request(
            seat=letter.business,
            decision="business",
            action=act.BusinessAction,
            step=self.step,
            draws=self._streams[letter.business],
            instructions=instructions("business", self.spec.prompts),
            briefing=briefing,
            news=act.News(
                letter.texts,
                (f"your last answer was refused: {letter.problem}",) if letter.problem else (),
                about=f"{letter.customer} writes; you answer {letter.customer} alone.",
            ),
            schema=business_form(briefing) if self.spec.forms == "known" else None,
        )

    def answer(self, letter: Letter, action: Action) -> bool:
        """Send a business's answer; False, with the problem in the letter, where there is none."""
        kind, reply, problem = _reply(letter, action)
        number = letter.asked + 1
        letter.asked += action.asked if isinstance(action, Failure) else 1
        if reply is not None and isinstance(reply, act.BusinessProposal):
            message: act.Message = self._proposal(letter, reply)
            problem = self._faults_of_offer(letter, reply)
        elif reply is not None:
            message = act.TextMessage(reply.content)
        if not problem:
            if letter.business in self._disguises:
                message = self._disguises[letter.business](message)
            result = self._send(letter.business, letter.customer, message)
            if isinstance(result, Refused):
                problem = f"{result.reason}: {result.words}"
            else:
                heard = act.Heard(self.state.rows, letter.business, message, self.step)
                self._talk(letter.business, letter.customer).append(heard)
        letter.problem = problem
        self.pages.decision(self.step, letter.business, letter.customer, number, kind, "", problem)
        return not problem

    def give_up(self, letters: Sequence[Letter]) -> None:
        """Tell customers whose business gave no valid answer, rather than lose it silently."""
        waiting = {one.profile.id: one for one in self.customers} if letters else {}
        for letter in letters:
            self.pages.add(
                "no_answer", self.step, letter.business, letter.customer, letter.asked,
                letter.problem,
            )  # fmt: skip
            if letter.customer in waiting:
                notice = f"{letter.business} gave no valid answer"
                waiting[letter.customer].notices.append(notice)
                waiting[letter.customer].history.append(notice)

    def _confirm(self, business: str, customer: str, payment: act.Payment) -> None:
        """The market's own courtesy, in the business's name."""
        offer = self.state.offers.get((business, payment.proposal_message_id))
        words = (
            f"Thank you. Your payment of {offer.proposal.total_price:.2f} for proposal "
            f"{offer.proposal.id} is confirmed."
            if offer is not None and offer.paid
            else f"There is no payment for proposal {payment.proposal_message_id} here."
        )
        message = act.TextMessage(words)
        if not isinstance(self._send(business, customer, message), Refused):
            heard = act.Heard(self.state.rows, business, message, self.step)
            self._talk(business, customer).append(heard)

    def _proposal(self, letter: Letter, draft: act.BusinessProposal) -> act.OrderProposal:
        """The offer under an id of its own: business, customer, and a number that goes up."""
        pair = letter.business, letter.customer
        self._offers_made[pair] = self._offers_made.get(pair, 0) + 1
        return act.OrderProposal(
            id=f"{letter.business}_{letter.customer}_{self._offers_made[pair]}",
            items=tuple(draft.items),
            total_price=draft.total_price,
            special_instructions=draft.special_instructions,
            estimated_delivery=draft.estimated_delivery,
            expiry_time=draft.expiry_time,
        )

    def _faults_of_offer(self, letter: Letter, draft: act.BusinessProposal) -> str:
        """What the reference's business checks before it sends, under any rules."""
        profile = self.state.profiles[letter.business]
        for line in draft.items:
            if line.item_name not in profile.menu_features:
                return f"not_on_menu: {line.item_name} is not on your menu"
        total = sum(line.unit_price * line.quantity for line in draft.items)
        if not abs(total - draft.total_price) < 0.01:
            return f"total_does_not_add_up: the items come to {total:.2f}"
        return ""

    # ---- the embedder

    def unread(self, decisions: Sequence[Action]) -> list[str]:
        """The texts without a vector that the searches among these decisions need."""
        queries = [
            one.search_query
            for one in decisions
            if isinstance(one, act.CustomerAction)
            and one.action_type == "search_businesses"
            and isinstance(one.search_query, str)
        ]
        return self.state.unread(queries)

    def ask_embedder(self, texts: Sequence[str]) -> Request:
        """The request for vectors."""
        return Request(
            seat=EMBEDDER,
            decision="embed",
            action=Vectors,
            step=self.step,
            draws=self._streams[EMBEDDER],
            batch={"text": texts},
        )

    def learn(self, texts: Sequence[str], answer: Action) -> None:
        """Take the embedder's answer; without one, searches go by hashed 3-grams."""
        meanings = self.state.meanings
        assert meanings is not None  # else nothing would have been asked
        fine = isinstance(answer, Vectors)
        problem = (
            meanings.learn(texts, answer.values)
            if fine
            else str(getattr(answer, "reason", "no vectors"))
        )
        name, content = (answer.embedder, answer.sha256) if fine else ("", "")
        self.pages.add("embedded", self.step, len(texts), name, content, problem)

    # ---- both

    def _act(self, caller: str, action: MarketAction) -> Result:
        entry = self._apply(caller, action)
        self.pages.entry(entry, None)
        return entry.result

    def _apply(self, caller: str, action: MarketAction) -> Entry:
        """Have it decided what comes of an action, here or elsewhere, and make the change."""
        entry = self._decide(self.state, caller, action)
        rules.evolve(self.state, entry)
        return entry

    def _send(self, sender: str, recipient: str, message: act.Message) -> Result:
        action = act.SendMessage(from_agent_id=sender, to_agent_id=recipient, message=message)
        entry = self._apply(sender, action)
        offer = None
        if isinstance(message, act.OrderProposal):
            offer = self.state.offers.get((sender, message.id))
        elif isinstance(message, act.Payment):
            offer = self.state.offers.get((recipient, message.proposal_message_id))
        self.pages.entry(entry, offer)
        delivered = not isinstance(entry.result, Refused) or self.spec.rules.refused_are_delivered
        if delivered and recipient in self._number:
            self._rung[recipient] = None
        return entry.result

    def _seen(self, heard: act.Heard) -> act.OfferSeen:
        proposal = heard.message
        assert isinstance(proposal, act.OrderProposal)  # only these are kept among the offers
        offer = self.state.offers[heard.sender, proposal.id]
        lapsed = offer.expires is not None and self.step > offer.expires
        return act.OfferSeen(heard.index, heard.sender, proposal, offer.paid, lapsed)

    def _talk(self, business: str, customer: str) -> deque[act.Heard]:
        talk = self._talks.get((business, customer))
        if talk is None:
            talk = self._talks[business, customer] = deque(maxlen=self.spec.memory)
        return talk

    def _errand(self, profile: act.Customer) -> Shopping:
        memory = self.spec.memory
        return Shopping(profile, deque(maxlen=memory), deque(maxlen=memory))


class _Draws(dict[str, Streams]):
    """The streams of each seat, made when first needed."""

    def __init__(self, streams: Streams) -> None:
        super().__init__()
        self._all = streams

    def __missing__(self, seat: str) -> Streams:
        made = self[seat] = self._all.of(seat)
        return made


_CUSTOMER_KINDS = ("search_businesses", "send_messages", "check_messages", "end_transaction")


def _faults_of_customer(action: act.CustomerAction) -> list[str]:
    """What is wrong with the form of a decision; agents in plain Python may hand over anything."""
    kind = action.action_type
    if kind not in _CUSTOMER_KINDS:
        return [f"unknown action_type {kind!r:.60}"]
    if kind == "search_businesses" and not (
        isinstance(action.search_query, str) and type(action.search_page) is int
    ):
        return ["search_businesses needs a search_query, and a whole number as search_page"]
    if kind == "send_messages":
        sent = action.messages
        if not isinstance(sent, act.CustomerMessages) or not (
            sent.text_messages or sent.pay_messages
        ):
            return ["send_messages needs messages"]
        for text in sent.text_messages:
            if not _are_texts(text.content, text.to_business_id):
                return ["a text message needs content and to_business_id"]
        for payment in sent.pay_messages:
            words = (payment.payment_method, payment.delivery_address, payment.payment_message)
            if not _are_texts(
                payment.proposal_message_id, *(one for one in words if one is not None)
            ):
                return ["a payment needs the proposal_message_id"]
    return []


def _are_texts(*values: object) -> bool:
    return all(isinstance(one, str) for one in values)


def _reply(
    letter: Letter, action: Action
) -> tuple[str, act.BusinessText | act.BusinessProposal | None, str]:
    """The kind of a business's answer, the answer if it is well-formed, else what is wrong."""
    if isinstance(action, Failure):
        return "invalid", None, action.reason
    reply: act.BusinessText | act.BusinessProposal | None
    if action.action_type == "text":
        reply = action.text_message
        if isinstance(reply, act.BusinessText) and isinstance(reply.content, str):
            return "text", reply, ""
        return "invalid", None, "a text needs text_message with content"
    reply = action.order_proposal_message
    if action.action_type != "order_proposal" or not isinstance(reply, act.BusinessProposal):
        return "invalid", None, "expected a text or an order_proposal with its message"
    words = (reply.special_instructions, reply.estimated_delivery, reply.expiry_time)
    if (
        not reply.items
        or type(reply.total_price) not in (int, float)
        or not all(one is None or isinstance(one, str) for one in words)
        or not all(
            isinstance(line.item_name, str)
            and isinstance(line.id, str)
            and type(line.quantity) is int
            and line.quantity >= 1
            and type(line.unit_price) in (int, float)
            and 0 <= line.unit_price < float("inf")
            for line in reply.items
        )
    ):
        return "invalid", None, "a proposal needs items with id, item_name, quantity, unit_price"
    return "order_proposal", reply, ""
