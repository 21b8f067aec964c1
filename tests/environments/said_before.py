"""An agent that says again what a model said in an evaluation: seats with their replies as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from marketeval.agents.llm_seat import reader


class SaidBefore:
    """One decision after the other, from the list of its seat."""

    immediate, deterministic, privileged = True, True, False

    def __init__(self, file):
        self.replies = {
            seat: iter(said) for seat, said in json.loads(Path(file).read_text()).items()
        }

    async def act(self, request):
        """The next one."""
        return reader(request)(next(self.replies[request.seat]))
