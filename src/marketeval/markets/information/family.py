"""What the information-access family offers to those who run scenarios of any family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from marketeval.core.log import EventKind
from marketeval.events import information as events
from marketeval.markets.information.scenario import Information

Spec = Information
KINDS: Sequence[EventKind] = events.KINDS
SHARED: Sequence[EventKind] = events.SHARED
SERVICES: Mapping[str, str] = {}
