# SPDX-License-Identifier: Apache-2.0
"""/run/seawall/base.json: the uncounted memory that is normal for this host and this boot.

Written by ``seawall memory --learn-base``, or on its own when nothing but the system runs; a
host that booted again has to learn again.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, read_as

PATH: Final = "/run/seawall/base.json"
SCHEMA: Final = "seawall.base/1"
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_LIMIT_BYTES: Final = 64 << 10
_NUMBER_MOST: Final = 1 << 63
_HOW: Final = ("asked", "no tenant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What no line of the ledger explained when nothing but the host itself ran."""

    boot_id: str
    residual_bytes: int
    """The residual that is normal for this boot."""
    residual_error_bytes: int
    learned_at_unix_seconds: float
    how: str
    """``asked`` (the owner said so) or ``no tenant`` (learned when none ran)."""


def parse(data: bytes) -> Base:
    """A document of schema ``seawall.base/1``; further keys are skipped."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "JSON", data) from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ParseProblem(0, f"an object of schema {SCHEMA}", data)
    boot_id, how = document.get("boot_id"), document.get("how")
    if not isinstance(boot_id, str) or not boot_id or how not in _HOW:
        raise ParseProblem(0, f"a boot_id, and how as one of {_HOW}", data)
    return Base(
        boot_id=boot_id,
        residual_bytes=int(_number(document, "residual_bytes")),
        residual_error_bytes=int(_number(document, "residual_error_bytes")),
        learned_at_unix_seconds=float(_number(document, "learned_at_unix_seconds")),
        how=how,
    )


def document_of(base: Base) -> bytes:
    """What ``parse`` reads back: the content of the file."""
    return json.dumps({"schema": SCHEMA, **asdict(base)}, indent=1).encode() + b"\n"


def read(host: Host) -> Base | Unread:
    """Unread (``absent``) as well when the file is of another boot."""
    base = read_as(host, PATH, parse, _LIMIT_BYTES)
    if isinstance(base, Unread):
        return base
    boot_id = host.read(BOOT_ID)
    if isinstance(boot_id, Unread):
        return boot_id
    if decode_name(boot_id).strip() != base.boot_id:
        return Unread(PATH, "absent", "learned in another boot; it has to be learned again")
    return base


def _number(document: dict[str, object], key: str) -> int | float:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseProblem(0, f"a number for {key}")
    if not abs(value) <= _NUMBER_MOST:  # nan compares false
        raise ParseProblem(0, f"a number of at most 64 bits for {key}")
    return value
