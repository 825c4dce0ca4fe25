# SPDX-License-Identifier: Apache-2.0
"""``seawall guard pins`` as text: a row for each program, what was left out and why."""

from collections.abc import Iterator
from typing import Any, Final

from seawall.views.terminal import Console, shorten_path
from seawall.words import duration, percent, size

_PROGRAMS_SHOWN: Final = 40
_REFUSED_SHOWN: Final = 12
_WHAT_WIDTH: Final = 34
_COLUMNS: Final = ("mapped_bytes", "before_bytes", "would_bytes", "pinned_bytes", "refused_bytes")
_OLD_SECONDS: Final = 120.0
"""A pinner tells every half minute, a thrashing node's a little later."""


def lines(page: dict[str, Any], paper: Console, hidden: str = "") -> Iterator[str]:
    """The whole; ``page`` is the document's.  ``hidden``: why what is pinned cannot be seen."""
    yield from paper.wrap(_first(page, hidden))
    if not page["asked_for"]:
        yield from paper.wrap(
            "guard.toml asks for nothing (pin is empty, which is how it comes). "
            'With pin = ["node"] this would be held:'
        )
    elif not page["is_pinning"]:
        yield from paper.wrap(f"It would hold, for pin = {', '.join(page['pin'])}:")
    yield ""
    yield from _table(page, paper)
    if more := [*_left_out(page, paper), *_more(page, paper)]:
        yield ""
        yield from more


def _more(page: dict[str, Any], paper: Console) -> Iterator[str]:
    for row in page["slices"]:
        yield from paper.wrap(f"memory.low of {row['path']}: {row['words']}")
    for word in page["names_nobody"]:
        yield from paper.wrap(f'pin: "{word}" names nobody that runs here')
    for problem in page["problems"]:
        yield from paper.wrap(f"Problem: {problem}")


def _first(page: dict[str, Any], hidden: str) -> str:
    budget, total = page["budget_bytes"], page["total_bytes"]
    most = f"of at most {size(budget)} ({percent(budget / total if total else 0)} of the memory)"
    if hidden:
        return f"What is pinned, {most}, cannot be seen: {hidden}."
    if not page["is_pinning"]:
        return f"No pinner runs on this machine: nothing is pinned, {most}."
    age = page["age_seconds"]
    old = ", which is too long: do not believe this" if age > _OLD_SECONDS else ""
    return (
        f"{size(page['pinned_bytes'])} of program text is pinned, {most}; "
        f"{size(page['left_bytes'])} is left. The pinner (pid {page['pid']}) told this "
        f"{duration(age)} ago{old}."
    )


def _table(page: dict[str, Any], paper: Console) -> Iterator[str]:
    head = ("program", "procs", "text", "was in", "would be", "pinned", "left out")
    rows = page["programs"]
    sums = {name: sum(row[name] for row in rows) for name in _COLUMNS}
    told = [_row(row) for row in rows[:_PROGRAMS_SHOWN]]
    if len(rows) > _PROGRAMS_SHOWN:
        told.append((f"({len(rows) - _PROGRAMS_SHOWN} more)", "", "", "", "", "", ""))
    told.append(_row({"name": "all", "processes": None, **sums}))
    yield from paper.table(head, told)
    yield from paper.wrap(
        "text: code and read-only data that is mapped; was in: of it in memory before it was pinned"
    )


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    processes = "" if row["processes"] is None else f"{row['processes']}"
    mapped, before = row["mapped_bytes"], row["before_bytes"]
    share = percent(before / mapped) if mapped else "-"
    others = (size(row[name]) if row[name] else "-" for name in _COLUMNS[2:])
    return (row["name"], processes, size(mapped), share, *others)


def _left_out(page: dict[str, Any], paper: Console) -> Iterator[str]:
    rows = page["refused"]
    if not rows:
        return
    yield "Left out:"
    for row in rows[:_REFUSED_SHOWN]:
        what = shorten_path(row["what"], _WHAT_WIDTH)
        much = "" if row["bytes"] is None else f"{size(row['bytes'])}: "
        yield from paper.wrap(f"{what}  {much}{row['why']}", "    ", "  ")
    if len(rows) > _REFUSED_SHOWN:
        yield f"  and {len(rows) - _REFUSED_SHOWN} more (--json has them)"
