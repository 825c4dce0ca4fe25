# SPDX-License-Identifier: Apache-2.0
"""One answer of a round as it stands in a body (``round_frames.py``), and back."""

import json
from typing import Any, Final, TypeAlias, cast, get_args

from seawall.blackbox import text_changes
from seawall.blackbox.path_numbers import WordDecoder, WordEncoder
from seawall.host.host import JSON, Unread, Why

Question: TypeAlias = str | tuple[str, str]
"""A path; of a probe its name and argument."""

_REASONS: Final = frozenset(get_args(Why))
DEPTH_MOST: Final = 100
"""Of a probe's answer.  A box is hostile input, and what copies and compares answers recurses;
Python's own limit does not hold in its JSON encoder since 3.12.
"""


def encode_answer(
    section: str, question: Question, before: Any, answer: Any, words: WordEncoder
) -> JSON:
    """An answer, ``before`` being the one known (None: none)."""
    if isinstance(answer, Unread):
        reason: list[JSON] = [answer.why, answer.detail]
        return {"u": reason if answer.path == _path(question) else [*reason, answer.path]}
    if section == "files":
        text = _text(answer)
        return text_changes.change(_text(before), text) if type(before) is bytes else text
    if section == "names":
        return _names_told(before, answer, words)
    return cast("JSON", answer if section == "links" else {"a": answer})


def decode_answer(
    section: str, question: Question, before: Any, answer: JSON, words: WordDecoder
) -> Any:
    """The other way; ValueError.  A probe's answer comes as ``[answer]``."""
    if isinstance(answer, dict) and "u" in answer:
        return _unread(question, answer["u"])
    if section == "files":
        text = _text(before) if type(before) is bytes else ""
        return text_changes.changed(text, answer).encode("utf-8", "surrogateescape")
    if section == "names":
        return _names_read(before, answer, words)
    if section == "links" and isinstance(answer, str):
        return answer
    if section == "probes" and isinstance(answer, dict) and "a" in answer:
        if _is_deeper_than(answer["a"], DEPTH_MOST):
            raise ValueError(f"a probe's answer is nested more than {DEPTH_MOST} deep")
        return [answer["a"]]
    raise ValueError("an answer of another kind")


def _is_deeper_than(answer: JSON, most: int) -> bool:
    """Level by level, for a recursion would end where it must not."""
    level: list[JSON] = [answer]
    for _ in range(most + 1):
        level = [
            below
            for one in level if isinstance(one, dict | list)
            for below in (one.values() if isinstance(one, dict) else one)
        ]  # fmt: skip
        if not level:
            return False
    return True


def is_same(before: Any, answer: Any) -> bool:
    """Whether nothing has to be told."""
    if type(before) is not type(answer):
        return False
    if isinstance(answer, dict | list):  # 1 and true are equal, and not the same
        return json.dumps(before) == json.dumps(answer)
    return bool(before == answer)


def length(answer: Any) -> int:
    """About the characters that it takes in memory."""
    if isinstance(answer, bytes | str):
        return len(answer)
    if isinstance(answer, tuple):
        return sum(len(name) + 56 for name in answer)
    return len(json.dumps(answer)) if isinstance(answer, list) else 0


def _path(question: Question) -> str:
    return question if isinstance(question, str) else question[0]


def _unread(question: Question, reason: JSON) -> Unread:
    match reason:
        case [str(why), str(detail)] if why in _REASONS:
            return Unread(_path(question), cast("Why", why), detail)
        case [str(why), str(detail), str(path)] if why in _REASONS:
            return Unread(path, cast("Why", why), detail)
    raise ValueError("a refusal without its reason")


def _names_told(before: Any, names: tuple[str, ...], words: WordEncoder) -> JSON:
    if isinstance(before, tuple):
        was, now = set(before), set(names)
        plus, minus = [n for n in names if n not in was], [n for n in before if n not in now]
        if len(plus) + len(minus) < len(names) and _merged(before, plus, minus) == names:
            return {"+": [words.name(n) for n in plus], "-": [words.name(n) for n in minus]}
    return {"n": [words.name(name) for name in names]}


def _names_read(before: Any, answer: JSON, words: WordDecoder) -> tuple[str, ...]:
    match answer:
        case {"n": list(names)}:
            return tuple(words.names(names))
        case {"+": list(plus), "-": list(minus)} if isinstance(before, tuple):
            return _merged(before, words.names(plus), words.names(minus))
    raise ValueError("a folder is a list of names")


def _merged(before: tuple[str, ...], plus: list[str], minus: list[str]) -> tuple[str, ...]:
    gone = set(minus)
    return tuple(sorted([*(name for name in before if name not in gone), *plus]))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
