"""How an answer is held against the accepted ones, and how a judge's reply is read.

All are functions of texts. Where several answers are accepted, the best one counts.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence

from marketeval.events.information import CORRECT, INCORRECT, NOT_ATTEMPTED

_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?\.\d+")
_WORDS = {"CORRECT": CORRECT, "INCORRECT": INCORRECT, "NOT ATTEMPTED": NOT_ATTEMPTED}
_LETTERS = {"A": CORRECT, "B": INCORRECT, "C": NOT_ATTEMPTED}


def normalised(text: str) -> str:
    """Lower case without punctuation, articles and spare blanks (SQuAD; Rajpurkar et al. 2016).

    >>> normalised("The  Beatles!")
    'beatles'
    """
    words = text.lower().translate(_PUNCTUATION).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1 if the normalised answer is one of the normalised golds, else 0."""
    return float(any(normalised(answer) == normalised(gold) for gold in golds))


def match(answer: str, golds: Sequence[str]) -> float:
    """1 if a gold's normalised words stand in the answer, in a row, else 0.

    >>> match("The capital of Japan is Tokyo.", ["Tokyo"]), match("Tokyoites", ["Tokyo"])
    (1.0, 0.0)
    """
    found = f" {normalised(answer)} "
    return float(any(normalised(gold) and f" {normalised(gold)} " in found for gold in golds))


def token_f1(answer: str, golds: Sequence[str]) -> float:
    """2 P R / (P + R) over the normalised words as bags, in [0, 1]; the best gold counts."""
    return max(
        (_f1(normalised(answer).split(), normalised(gold).split()) for gold in golds), default=0.0
    )


def number_match(answer: str, golds: Sequence[str], *, tolerance: float = 1e-6) -> float:
    """1 if the answer's last number is a gold's, within a relative tolerance, else 0.

    >>> number_match("12 x 1,000 makes 12,000.", ["12000"])
    1.0
    """
    numbers = _NUMBER.findall(answer)
    if not numbers:
        return 0.0
    said = float(numbers[-1].replace(",", ""))
    for gold in golds:
        wanted = _NUMBER.findall(gold)
        if wanted and math.isclose(
            said, float(wanted[-1].replace(",", "")), rel_tol=tolerance, abs_tol=1e-12
        ):
            return 1.0
    return 0.0


def read_grade(reply: str) -> int | None:
    """The grade in a judge's reply, a code of `events.information.GRADES`; None where it says
    none, or several: a reply is read, never guessed.

    Letters count where they stand as a grade ("B", "(B)", "B: ...", "Grade: B", "the answer is
    B"), the words CORRECT, INCORRECT, NOT ATTEMPTED anywhere; what counts has to agree.
    """
    text = re.sub(r"[_*`\"'“”‘’]+", " ", reply).strip()
    upper = re.sub(r"\s+", " ", text.upper())
    said: set[int] = set()
    unread = upper
    for phrase, grade in (
        (r"\bNOT[ -]ATTEMPTED\b", NOT_ATTEMPTED),
        (r"\bINCORRECT(?:LY)?\b|\bNOT (?:QUITE |ENTIRELY |FULLY )?CORRECT\b", INCORRECT),
        (r"\bCORRECT(?:LY)?\b", CORRECT),
    ):
        unread, count = re.subn(phrase, " # ", unread)
        if count:
            said.add(grade)
    letters = [
        r"^\(?([ABC])\)?(?=$|[.:;,)\-–]| #)",  # alone, or at the start of a verdict
        r"(?:GRADE|ANSWER|VERDICT|JUDG(?:E)?MENT|RATING|CHOICE|OPTION)\b[^A-Z0-9]{0,3}"
        r"(?:(?:IS|WOULD BE|AS)\b[^A-Z0-9]{0,3})?\(?([ABC])\b(?! [A-Z#])",
    ]
    for pattern in letters:
        said |= {_LETTERS[letter] for letter in re.findall(pattern, unread, re.MULTILINE)}
    return said.pop() if len(said) == 1 else None


def read_rating(reply: str, *, most: int = 10) -> float | None:
    """The rating in a judge's reply, from 0 to `most`; None where there is none, or several.

    >>> read_rating("Rating: 7/10"), read_rating("7 or 8"), read_rating("11")
    (7.0, None, None)
    """
    text = re.sub(rf"\s*(?:/|out of)\s*{most}\b", " ", reply)
    labelled = re.findall(
        r"(?:rating|score|grade)\W{0,5}(?:is|of)?\W{0,3}(-?\d+(?:\.\d+)?)", text, re.I
    )
    found = {float(one) for one in labelled or re.findall(r"-?\d+(?:\.\d+)?", text)}
    if len(found) != 1:
        return None
    rating = found.pop()
    return rating if 0.0 <= rating <= most else None


def _f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    common = sum((Counter(answer) & Counter(gold)).values())
    if not common:
        return float(not answer and not gold)
    precision, recall = common / len(answer), common / len(gold)
    return 2.0 * precision * recall / (precision + recall)
