"""Made-up outcomes that need no file: who answers which question how, by a hash.

Both sides of the comparison compute them anew: the published package's stubs, and our tests. A
generator is right on a question with the probability that Table 1 of the paper gives as its F1.
"""

from __future__ import annotations

import hashlib

F1 = {
    "generator_gemini_2_5_flash_lite": 0.1683,
    "generator_qwen3_235b_a22b_2507": 0.6024,
    "generator_kimi_k2_5": 0.4251,
    "generator_gpt_oss_120b": 0.1442,
    "generator_deepseek_v3_2": 0.2759,
    "generator_llama_3_3_70b_instruct": 0.2774,
    "generator_grok_4_1_fast": 0.1921,
}
GRADES = {"A": "correct", "B": "incorrect", "C": "not_attempted"}


def letter(run: int, qid: str, generator: str) -> str:
    """The grade A, B or C of one answer in one run: right with probability F1, else B or C evenly.

    >>> letter(0, "1", "generator_kimi_k2_5")
    'A'
    """
    digest = hashlib.sha256(f"{run}/{qid}/{generator}".encode()).digest()
    if int.from_bytes(digest[:8], "big") < F1[generator] * 2.0**64:
        return "A"
    return "BC"[digest[8] % 2]


def table(run: int, items: int = 500) -> list[tuple[str, str, float, str]]:
    """All outcomes of a run, as rows of (item_id, model, score, grade); items are "1" to "500"."""
    rows: list[tuple[str, str, float, str]] = []
    for item in range(1, items + 1):
        for generator in F1:
            grade = letter(run, str(item), generator)
            rows.append((str(item), generator, float(grade == "A"), GRADES[grade]))
    return rows
