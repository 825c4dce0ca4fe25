# SPDX-License-Identifier: Apache-2.0
"""/run/seawall/claims: what a watcher learned of uncounted memory, in this boot.

Written by ``seawall memory --watch`` (and the guard), replaced whole.  A claim is valid for
the cgroup that it was learned of: a path comes again, its inode does not.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from seawall.host.host import JSON, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.base import BOOT_ID
from seawall.readings.own_files import NUMBER_MOST, WORD_MOST, document, number, word
from seawall.readings.reading import decode_name, read_as

PATH: Final = "/run/seawall/claims"
SCHEMA: Final = "seawall.claims/1"
LIMIT_BYTES: Final = 1 << 20
CLAIMS_MOST: Final = 256
FRAMES_MOST: Final = 12
_WORD_MOST: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedClaim:
    """What one holder held when it was last looked at; bytes."""

    holder: str
    workload: str | None
    cgroup: str | None
    """Below the mount point of the tree that counts memory."""
    folder: str | None
    """Where that cgroup is on the host."""
    cgroup_inode: int | None
    driver: str | None
    kind: str
    what: str
    within: str
    bytes: int
    least_bytes: int
    most_bytes: int
    source: str
    stack: tuple[str, ...]
    learned_at_unix_seconds: float
    is_gone: bool = False
    """Its cgroup was removed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedClaims:
    """The topic: the claims on uncounted memory that a watcher of this boot wrote last."""

    boot_id: str
    written_at_unix_seconds: float
    base_residual_bytes: int
    """Uncounted memory apart from the claims: they are at most what grew over it."""
    residual_bytes: int
    """Uncounted memory when this was written."""
    blind: str
    """Why the watcher cannot trace; empty when it can."""
    claims: tuple[SavedClaim, ...]


def parse(data: bytes) -> SavedClaims:
    """A document of schema ``seawall.claims/1``; further keys are skipped."""
    found = document(data, SCHEMA)
    rows = found.get("claims")
    if not isinstance(rows, list) or len(rows) > CLAIMS_MOST:
        raise ParseProblem(0, f"a list of at most {CLAIMS_MOST} claims")
    return SavedClaims(
        boot_id=word(found, "boot_id"),
        written_at_unix_seconds=float(number(found, "written_at_unix_seconds")),
        base_residual_bytes=int(number(found, "base_residual_bytes", least=-NUMBER_MOST)),
        residual_bytes=int(number(found, "residual_bytes", least=-NUMBER_MOST)),
        blind=word(found, "blind"),
        claims=tuple(_claim(row) for row in rows),
    )


def document_of(kept: SavedClaims) -> bytes:
    """What ``parse`` reads back: the content of the file.  What does not fit is left out from
    the end, for one workload with paths of 4 KiB must not make the file unreadable.
    """
    claims = [claim for claim in kept.claims if _is_short(claim)][:CLAIMS_MOST]
    while True:
        rows = asdict(replace(kept, claims=tuple(claims)))
        data = json.dumps({"schema": SCHEMA, **rows}, indent=1).encode() + b"\n"
        if len(data) <= LIMIT_BYTES or not claims:
            return data
        claims = claims[: len(claims) // 2]


def read(host: Host) -> SavedClaims | Unread:
    """Without claims of cgroups that are others by now; Unread (``absent``) when the whole
    file is of another boot.
    """
    kept = read_as(host, PATH, parse, LIMIT_BYTES)
    if isinstance(kept, Unread):
        return kept
    boot_id = host.read(BOOT_ID)
    if isinstance(boot_id, Unread):
        return boot_id
    if decode_name(boot_id).strip() != kept.boot_id:
        return Unread(PATH, "absent", "learned in another boot")
    return replace(kept, claims=tuple(_valid(host, kept.claims)))


def inode_of(host: Host, folder: str) -> int | Unread:
    """The inode of a cgroup's folder, asked by the probe; Unread where it is gone."""
    answer = host.ask("inode", folder)
    if isinstance(answer, Unread):
        return answer
    inode = answer.get("inode") if isinstance(answer, dict) else None
    return inode if type(inode) is int else Unread(folder, "malformed", "expected an inode")


def _valid(host: Host, claims: tuple[SavedClaim, ...]) -> Iterator[SavedClaim]:
    known: dict[str, int | Unread] = {}
    for claim in claims:
        if claim.folder is None:
            yield claim
            continue
        if claim.folder not in known:
            known[claim.folder] = inode_of(host, claim.folder)
        now = known[claim.folder]
        if now == claim.cgroup_inode:
            yield claim
        elif isinstance(now, Unread) and now.why in ("absent", "vanished"):
            yield replace(claim, is_gone=True)


def _claim(row: JSON) -> SavedClaim:
    if not isinstance(row, dict):
        raise ParseProblem(0, "an object for each claim")
    folder = _optional(row, "folder")
    inode = None if folder is None else int(number(row, "cgroup_inode"))
    least, best, most = (int(number(row, name)) for name in ("least_bytes", "bytes", "most_bytes"))
    if not least <= best <= most:
        raise ParseProblem(0, "least_bytes, bytes and most_bytes in this order")
    stack = row.get("stack")
    return SavedClaim(
        holder=word(row, "holder"), workload=_optional(row, "workload"),
        cgroup=_optional(row, "cgroup"), folder=folder, cgroup_inode=inode,
        driver=_optional(row, "driver"), kind=word(row, "kind"), what=word(row, "what"),
        within=word(row, "within"), bytes=best, least_bytes=least, most_bytes=most,
        source=word(row, "source"),
        stack=tuple(str(frame)[:_WORD_MOST] for frame in stack[:FRAMES_MOST])
        if isinstance(stack, list) else (),
        learned_at_unix_seconds=float(number(row, "learned_at_unix_seconds")),
        is_gone=row.get("is_gone") is True,
    )  # fmt: skip


def _is_short(claim: SavedClaim) -> bool:
    words = claim.holder, claim.workload, claim.cgroup, claim.folder, claim.source
    return all(len(word) <= WORD_MOST for word in words if word)


def _optional(found: Mapping[str, JSON], key: str) -> str | None:
    return None if found.get(key) is None else word(found, key)
