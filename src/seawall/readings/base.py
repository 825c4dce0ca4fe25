# SPDX-License-Identifier: Apache-2.0
"""/run/seawall/base.json: the residual that is normal for this host and this boot.

Written by ``seawall memory --learn-base`` or on its own when no tenant runs; a host that
booted again has to learn again.
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread

PATH: Final = "/run/seawall/base.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    boot_id: str
    residual_bytes: int
    residual_error_bytes: int
    learned_at_unix_seconds: float
    how: str
    """``asked`` (the owner said so) or ``no tenant`` (learned when none ran)."""


def parse(data: bytes) -> Base:
    raise NotImplementedError


def read(host: Host) -> Base | Unread:
    """Unread (``absent``) as well when the file is of another boot."""
    raise NotImplementedError
