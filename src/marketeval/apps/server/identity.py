"""Who calls: by header as in the reference, or by token."""

from __future__ import annotations

import hmac
import re
import secrets

from marketeval.apps.server.book import hashed
from marketeval.apps.server.calls import Call, Stop, wrong
from marketeval.apps.server.host import Host
from marketeval.apps.server.settings import Settings
from marketeval.mechanisms.accounts import BANK

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
SHORTEST_TOKEN = 16


class Identity:
    """Says who a caller is, and who may enter under which id."""

    def __init__(self, host: Host, settings: Settings) -> None:
        self._host, self._settings = host, settings

    def caller(self, call: Call) -> str:
        """The agent that calls; 401 if it is nobody."""
        host = self._host
        named, token = call.header(b"x-agent-id"), bearer(call)
        if self._settings.auth == "header" and token is None:
            if named is None:
                raise Stop(401, "X-Agent-Id header required")
            if named not in host.documents:
                raise Stop(401, "Invalid agent ID")
            call.agent = named
            return named
        if token is None:
            raise Stop(401, "Authorization: Bearer TOKEN required (given at registration)", _ASK)
        agent = host.tokens.get(hashed(token))
        if agent is None:
            raise Stop(401, "Invalid token", _ASK)
        if named is not None and named != agent:
            raise Stop(401, "X-Agent-Id is not the agent of this token", _ASK)
        call.agent = agent
        return agent

    def is_operator(self, call: Call) -> bool:
        """Whether the operator calls."""
        return same(self._settings.operator, bearer(call))

    def needs_operator(self, call: Call) -> None:
        """403 unless the operator calls."""
        if not self.is_operator(call):
            raise Stop(403, "only the operator may do this (Authorization: Bearer OPERATOR-TOKEN)")

    def may_enter(self, call: Call, name: str) -> tuple[str, str]:
        """The token of an agent that registers: its hash, and the token itself if it was made here.

        An agent may bring a token of its own, so that a registration can be repeated when its
        answer was lost.
        """
        host, settings, token = self._host, self._settings, bearer(call)
        if name == BANK:
            raise wrong(
                "value_error", ("body", "agent", "id"), f"the id {BANK} is the market's own"
            )
        if settings.auth == "header":
            return ("" if token is None else hashed(token)), ""
        if not _ID.fullmatch(name):
            told = "expected 1 to 128 letters, digits and . _ : @ -"
            raise wrong("string_pattern_mismatch", ("body", "agent", "id"), told)
        if self.is_operator(call):
            return "", ""
        if name in host.documents:
            if token is None or host.tokens.get(hashed(token)) != name:
                raise Stop(
                    403, f"agent {name} is registered: replacing its profile needs its token"
                )
            return hashed(token), ""
        secret = settings.registration
        if secret and not same(secret, call.header(b"x-registration-token")):
            raise Stop(403, "registering here needs the header X-Registration-Token")
        if token is None:
            made = secrets.token_urlsafe(24)
            return hashed(made), made
        if len(token) < SHORTEST_TOKEN:
            raise Stop(422, f"a token of your own needs at least {SHORTEST_TOKEN} characters")
        if hashed(token) in host.tokens:
            raise Stop(403, "this token is another agent's")
        return hashed(token), ""


def bearer(call: Call) -> str | None:
    """The token in the Authorization header."""
    value = call.header(b"authorization")
    if value is None:
        return None
    scheme, _, token = value.partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def same(secret: str, given: str | None) -> bool:
    """Whether a secret that there is was given."""
    return bool(secret) and hmac.compare_digest(secret.encode(), (given or "").encode())


_ASK = {"WWW-Authenticate": "Bearer"}
