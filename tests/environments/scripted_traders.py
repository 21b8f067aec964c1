"""A model that plays a careful buyer and an honest business from its prompts alone.

It is shown what any model is shown, the messages of one held-open conversation, and answers in
JSON. Honest proposals list the amenities of the house; the buyer believes no other word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]

MENU = re.compile(r"^- (.+): (\d+\.\d\d)$", re.MULTILINE)
FOUND = re.compile(r"\((business_\d+)\), rated")
OFFER = re.compile(r"proposal (\S+?): (.+?); total (\d+\.\d\d)(?:; Amenities: ([^;\n]*))?")
NEEDS = r"(?:with|have|offers?) (.+?)(?:, and (?:order|book)\b|[.?]|$)"


def reply(body: Body) -> str:
    """The next decision of whoever's conversation this is."""
    heard = [str(one["content"]) for one in body["messages"] if one["role"] != "assistant"]
    rules, *talk = [one.partition("\n\nAnswer with one JSON value that fits")[0] for one in heard]
    return json.dumps(business(talk) if rules.startswith("You run one business") else buyer(talk))


def buyer(talk: list[str]) -> dict[str, Any]:
    """Search, ask all that were found, pay the cheapest proposal that fits, leave."""
    told, last = "\n".join(talk), talk[-1]
    wish = re.search(r"The wish: (.+)", told)[1]
    items = set(re.findall(r"'([^']+)'", wish))
    if len(talk) == 1:
        return {"action_type": "search_businesses", "search_query": wish, "reason": "look"}
    if len(talk) == 2:
        names = "; ".join(f'"{one}"' for one in sorted(items))
        ask = f"Please propose one each of {names}, and list your amenities."
        texts = [
            {"content": ask, "to_business_id": one} for one in dict.fromkeys(FOUND.findall(last))
        ]
        if texts:
            return {"action_type": "send_messages", "messages": {"text_messages": texts}}
    tail = wish[wish.rindex("'") :]
    needs = set(re.split(", | and ", re.search(NEEDS, tail)[1]))
    offers = [] if len(talk) > 3 else OFFER.findall(last)
    fitting = [
        (float(total), name)
        for name, lines, total, amenities in offers
        if set(re.findall(r"1 x (.+?) at ", lines)) >= items and set(amenities.split(", ")) >= needs
    ]
    if fitting:
        payment = {"proposal_message_id": min(fitting)[1]}
        return {"action_type": "send_messages", "messages": {"pay_messages": [payment]}}
    return {"action_type": "end_transaction", "reason": "done"}


def business(talk: list[str]) -> dict[str, Any]:
    """A proposal at menu prices of all that the last letter names, or words."""
    menu = {name: float(price) for name, price in MENU.findall(talk[0])}
    asked = re.findall(r'"([^"]+)"', talk[-1])
    if not asked or not set(asked) <= set(menu):
        return {"action_type": "text", "text_message": {"content": "We cannot serve all of that."}}
    has = re.search(r"You have: (.*?)\. You do not", talk[0])[1]
    lines = [
        {"id": str(place), "item_name": name, "quantity": 1, "unit_price": menu[name]}
        for place, name in enumerate(asked, 1)
    ]
    offer = {
        "items": lines,
        "total_price": round(sum(menu[name] for name in asked), 2),
        "special_instructions": f"Amenities: {has}",
    }
    return {"action_type": "order_proposal", "order_proposal_message": offer}


if __name__ == "__main__":  # for a server in a process of its own
    import asyncio
    import sys

    from marketeval.testing.fake_endpoint import FakeEndpoint

    server = FakeEndpoint(reply=reply, keep=False)
    asyncio.run(server.serve(lambda: print(server.port, flush=True) or sys.stdout.flush()))
