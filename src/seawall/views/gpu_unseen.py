# SPDX-License-Identifier: Apache-2.0
"""What ``seawall gpu`` could not see, in words, with what would provide it; alike rows are one."""

from collections.abc import Iterable, Iterator
from typing import Final, get_args

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices
from seawall.findings.blindness import NotSeen, provide
from seawall.host.host import Unread, Why

_SHOWN: Final = 6
_WORDS: Final[dict[Why, str]] = {
    "absent": "this machine does not have it",
    "refused": "permission denied",
    "vanished": "it went away while it was read",
    "too_big": "longer than is read",
    "no_answer": "it did not answer in time",
    "not_reached": "the time was over before it was asked",
    "not_captured": "the bundle does not hold it",
    "malformed": "not in a form that is known",
    "failed": "it could not be read",
    "bug": "a fault of seawall itself",
}


def unseen_rows(
    table: DeviceTable | Unread, containers: Iterable[ContainerDevices], *, is_root: bool
) -> list[NotSeen]:
    """``is_root``: whoever read it could not have had more rights."""
    if isinstance(table, Unread):
        return []
    return rows_of(_told(table, containers), is_root=is_root)


def rows_of(told: Iterable[str], *, is_root: bool) -> list[NotSeen]:
    """The account's own sentences, those with one reason and one remedy together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for words in told:
        what, why, needs = _row(words, is_root=is_root)
        groups.setdefault((why, needs), []).append(what)
    return [NotSeen(_names(what), why, needs) for (why, needs), what in groups.items()]


def _told(table: DeviceTable, containers: Iterable[ContainerDevices]) -> Iterator[str]:
    yield from table.unseen
    yield from (f"Kubernetes' logs: {words}" for words in table.log_unseen)
    for one in containers:
        yield from (f"{one.workload.name}: {words}" for words in one.unseen)


def _row(words: str, *, is_root: bool) -> tuple[str, str, str]:
    """Of ``WHAT: CODE DETAIL``, as the account tells it; else the sentence, and nothing more."""
    for code in get_args(Why):
        head, found, detail = words.partition(f": {code}")
        if found and (not detail or detail[0] == " "):
            what = head.rpartition(", ")[2]
            why = detail.strip() or _WORDS[code]
            return head, why, provide(Unread(what, code, detail.strip()), is_root=is_root)
    head, found, rest = words.partition(": ")
    return (head, rest, "") if found else ("devices of containers", words, "")


def _names(what: list[str]) -> str:
    what = list(dict.fromkeys(what))
    more = f"; and {len(what) - _SHOWN} more" if len(what) > _SHOWN else ""
    return "; ".join(what[:_SHOWN]) + more
