# SPDX-License-Identifier: Apache-2.0
"""Whose a claim is, and how good its evidence."""

from typing import Final, TypeAlias

from seawall.accounts.claim import Claim

RANKS: Final = {"exact": 0, "traced": 1, "estimate": 2, "bound": 3}
"""Best evidence first."""
_EITHER: Final = "either "
"""Begins the holder of a claim of several: what a workload is called is never what begins it."""
_OR: Final = " or "
Owner: TypeAlias = tuple[str, str]
_TTM_USERS: Final = frozenset({"amdgpu", "radeon", "nouveau", "xe", "vmwgfx", "qxl", "ast"})


def likely_bytes(claim: Claim) -> int:
    """What it explains; a bound explains nothing."""
    return 0 if claim.confidence == "bound" else claim.bytes


def owner_of(claim: Claim) -> Owner:
    """Whose it is: a cgroup, a process in none, one of several, a driver, or whatever the source
    calls the holder.
    """
    if claim.cgroup is not None or claim.workload is not None:
        return "cgroup", claim.cgroup or claim.workload or ""
    if claim.holder.startswith("process "):
        return "process", claim.holder
    if claim.holder.startswith(_EITHER):
        return "either", claim.holder
    return ("driver", driver_key(claim.driver)) if claim.driver else ("holder", claim.holder)


def either(one: Claim, other: Claim) -> str:
    """The holder of what one of them has, nobody knows which."""
    names = {name for claim in (one, other) for name in _names(claim)}
    return _EITHER + _OR.join(sorted(names))


def _names(claim: Claim) -> list[str]:
    if owner_of(claim)[0] == "either":
        return claim.holder.removeprefix(_EITHER).split(_OR)
    return [claim.holder]


def is_total(claim: Claim) -> bool:
    """Whether it is of the whole host, or of all users of a driver: others' are part of it."""
    return owner_of(claim)[0] in ("driver", "holder")


def driver_key(driver: str) -> str:
    """The same for ``nvidia``, ``the NVIDIA driver`` and ``nvidia-uvm``."""
    words = "".join(c if c.isalnum() else " " for c in driver.lower()).split()
    return next((word for word in words if word != "the"), "")


def is_of_driver(total: str, part: str) -> bool:
    """Whether what ``part`` takes is in what ``total`` takes."""
    whole, one = driver_key(total), driver_key(part)
    return whole == one or (whole == "ttm" and one in _TTM_USERS)
