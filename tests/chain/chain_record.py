"""Rows of the chain as text that a page can show: one line for what happened at once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

LINES_MOST = 40
LETTERS_MOST = 118
TOGETHER_SECONDS = 3.0


def record(title: str, rows: Sequence[dict[str, Any]], figures: str = "") -> str:
    """At most `LINES_MOST` lines; what is left out is counted."""
    lines = list(lines_of(rows))
    room = LINES_MOST - 1 - bool(figures)
    if len(lines) > room:
        left = len(lines) - room + 1
        lines = [*lines[: room - 1], f"  ... {left} more lines in the journal"]
    return "\n".join([title, *lines, *([figures] if figures else [])]) + "\n"


def lines_of(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for group in groups(rows):
        first = group[0]
        names = [short(row["subject"]) for row in group]
        subject = ", ".join(dict.fromkeys(names))
        if len(names) > 1 and len(set(names)) == 1:
            subject = f"{names[0]} x{len(names)}"
        text = f"{first['at']:6.0f} s  {first['what']:12} {subject}  {first['words']}"
        yield text.rstrip()[:LETTERS_MOST]


def groups(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Same thing, same words, nearly the same moment."""
    waiting: list[list[dict[str, Any]]] = []
    for row in rows:
        for group in waiting:
            is_same = (group[0]["what"], group[0]["words"]) == (row["what"], row["words"])
            if is_same and row["at"] - group[0]["at"] < TOGETHER_SECONDS:
                group.append(row)
                break
        else:
            waiting.append([row])
    yield from waiting


def short(subject: str) -> str:
    """A pod of a Deployment by the Deployment's name."""
    words = subject.split(" ")
    pod = words[0] if len(words) != 2 else words[1]
    parts = pod.split("-")
    is_pod = len(parts) == 3 and len(parts[2]) == 5
    return subject.replace(pod, parts[0]) if is_pod else subject
