"""The least harness that verifiers can hold a conversation with: what `verifiers_bridge` is held
against. It answers nothing anew, knows no schema and counts nothing."""

from __future__ import annotations

import aiohttp
import verifiers.v1 as vf


class BareHarness(vf.Harness[vf.HarnessConfig]):
    """One HTTP call per turn; the conversation comes from the trace, as the base class has it."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False
    http: aiohttp.ClientSession  # one for all, set by the benchmark

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        """Send the system prompt and the conversation."""
        system, prompt = self.resolve_prompt(data)
        talk = [{"role": "system", "content": system}] if system else []
        talk += [one.model_dump(exclude_none=True) for one in prompt]
        async with BareHarness.http.post(
            f"{endpoint}/chat/completions",
            json={"model": ctx.model, "messages": talk},
            headers={"Authorization": f"Bearer {secret}"},
        ) as reply:
            reply.raise_for_status()
            await reply.read()
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


__all__ = ["BareHarness"]
