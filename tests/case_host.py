# SPDX-License-Identifier: Apache-2.0
"""A machine written down by hand in one readable text file: the cases of rules.

Format::

    why: one pod takes driver memory
    verdict: fires
    headline: GiB of kernel memory
    === /proc/meminfo
    MemTotal:       63596320 kB
    === /proc/slabinfo !refused
    === ?page_size
    65536
    === round 2 +2.5

``key: value`` lines come first and are for people and tests.  A path's section holds the
file's content as it stands, ``!reason`` an :data:`~seawall.host.host.Why`; ``-> TEXT`` makes
it a link; ``?probe`` or ``?probe ARGUMENT`` holds JSON.  ``round N +SECONDS`` opens a later
pass that starts as a copy of the one before.  Folders follow from the paths in them; what is
not written down is absent.  ``\\0``, ``\\n`` and ``\\xNN`` stand for those bytes in paths.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, cast, get_args

from seawall.host.host import JSON, READ_LIMIT_BYTES, Unread, Why
from seawall.host.recording import Round
from seawall.problems import UsageProblem

_DEFAULT_PROBES: Final[dict[str, JSON]] = {
    "page_size": 4096,
    "clock_ticks": 100,
    "machine": "x86_64",
    "node_name": "case",
    "reader": {"uid": 0, "capabilities": ["DAC_READ_SEARCH", "SYS_PTRACE", "SYS_ADMIN"]},
}
_DEFAULT_FILES: Final = {
    "/proc/sys/kernel/osrelease": b"6.1.0-case\n",
    "/proc/sys/kernel/random/boot_id": b"00000000-0000-4000-8000-000000000000\n",
    "/proc/uptime": b"86400.00 86400.00\n",
    "/sys/devices/system/cpu/online": b"0-3\n",
    "/sys/devices/system/cpu/possible": b"0-3\n",
}
_START_SECONDS: Final = 1_700_000_000.0
_REASONS: Final = frozenset(get_args(Why))


class CaseHost:
    """One round of a case.  Everything that is not written down is absent."""

    def __init__(self, round_: Round) -> None:
        self._round = round_
        self._folders = _folders(round_)

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        answer = self._round.files.get(path, Unread(path, "absent", "not in this case"))
        if isinstance(answer, bytes) and len(answer) > limit_bytes:
            return Unread(path, "too_big", "larger than its reader's limit")
        return answer

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        for path in paths:
            yield self.read(path)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        given = self._round.names.get(path)
        if given is not None:
            return given
        found = self._folders.get(path.rstrip("/"))
        return tuple(sorted(found)) if found else Unread(path, "absent", "not in this case")

    def link(self, path: str) -> str | Unread:
        return self._round.links.get(path, Unread(path, "absent", "not in this case"))

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        missing = Unread(probe, "absent", "not in this case")
        return self._round.probes.get((probe, argument), missing)


class RuleCase:
    """The parsed text: ``expect`` (the key: value lines) and the hosts of its rounds."""

    def __init__(self, expect: dict[str, str], rounds: Sequence[Round]) -> None:
        self.expect = expect
        self.records = tuple(rounds)
        self.rounds = tuple(CaseHost(round_) for round_ in rounds)


def parse_case(text: bytes) -> RuleCase:
    """Parse a case; UsageProblem with the line where it is malformed."""
    expect: dict[str, str] = {}
    rounds = [_first_round()]
    body: list[bytes] | None = None
    head = b""
    number = 0
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.startswith(b"=== "):
            _close(rounds, head, body, number)
            head, body = line[4:], []
            if head.startswith(b"round "):
                _open_round(rounds, head, number)
                head, body = b"", None
        elif body is not None:
            body.append(line)
        elif line.strip() and not line.startswith(b"#"):
            key, colon, value = line.decode("utf-8", "replace").partition(":")
            if not colon:
                raise UsageProblem(f"case line {number}: expected 'key: value' or '=== PATH'")
            expect[key.strip()] = value.strip()
    _close(rounds, head, body, number)
    return RuleCase(expect, rounds)


def _first_round() -> Round:
    round_ = Round(files=dict(_DEFAULT_FILES))
    for probe, answer in _DEFAULT_PROBES.items():
        round_.probes[probe, ""] = answer
    _set_clock(round_, _START_SECONDS)
    return round_


def _set_clock(round_: Round, seconds: float) -> None:
    clocks: JSON = {"unix_seconds": seconds, "monotonic_seconds": seconds - _START_SECONDS}
    round_.probes["now", ""] = clocks


def _open_round(rounds: list[Round], head: bytes, number: int) -> None:
    match = re.fullmatch(rb"round \d+ \+([0-9.]+)", head.strip())
    if not match:
        raise UsageProblem(f"case line {number}: expected '=== round N +SECONDS'")
    last = rounds[-1]
    later = Round(dict(last.files), dict(last.names), dict(last.links), dict(last.probes))
    now = last.probes["now", ""]
    before = now["unix_seconds"] if isinstance(now, dict) else _START_SECONDS
    _set_clock(later, cast("float", before) + float(match[1]))
    rounds.append(later)


def _close(rounds: list[Round], head: bytes, body: list[bytes] | None, number: int) -> None:
    """Put a finished section into the round that is open."""
    if body is None:
        return
    round_ = rounds[-1]
    content = b"\n".join(body).rstrip(b"\n") + b"\n"
    if head.startswith(b"?"):
        probe, _, argument = head[1:].decode().partition(" ")
        try:
            round_.probes[probe, argument] = json.loads(content)
        except ValueError as error:
            raise UsageProblem(f"case before line {number}: ?{probe} must hold JSON") from error
        return
    path, _, target = head.partition(b" -> ")
    if target:
        round_.links[_unescape(path)] = target.decode()
        return
    path, _, reason = head.partition(b" !")
    name = _unescape(path.strip())
    if not reason:
        round_.files[name] = content if body and any(body) else b""
        round_.names.pop(name, None)
        return
    why = reason.strip().decode()
    if why not in _REASONS:
        raise UsageProblem(f"case before line {number}: !{why} is not one of {sorted(_REASONS)}")
    detail = "address space locked, in this case" if why == "no_answer" else "in this case"
    unread = Unread(name, cast("Why", why), detail)
    round_.files[name] = unread
    if why == "absent":
        del round_.files[name]
    else:
        round_.names[name] = unread


def _unescape(path: bytes) -> str:
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), path)
    raw = raw.replace(b"\\0", b"\0").replace(b"\\n", b"\n")
    return raw.decode("utf-8", "surrogateescape")


def _folders(round_: Round) -> dict[str, set[str]]:
    """Which names each folder holds, as the paths in the case imply."""
    folders: dict[str, set[str]] = {}
    for path in [*round_.files, *round_.links]:
        parts = path.strip("/").split("/")
        where = ""
        for depth, part in enumerate(parts):
            is_last = depth == len(parts) - 1
            folders.setdefault(where, set()).add(part if is_last else part + "/")
            where += "/" + part
    return folders
