# SPDX-License-Identifier: Apache-2.0
"""What versions of runc and systemd do to devices: only where they are known, and with what doubt.

runc 1.1.3 (PR 3504) to 1.1.6 (1.1.7: PR 3842) tells systemd of no device whose /dev/char link is
missing, nor does any runc where systemd is older than 240.  runc before 1.2.5 (PR 4612) makes
units that systemd since 230 always wants to reload.  runc before 1.0 writes device rules anew at
each update of a container (PR 2994).  A distribution's runc may carry the fix of a later one; and
which of several runs a container is only sure where its own bundle names it.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from seawall.host.host import Unread
from seawall.readings.runtime_versions import Runtime, RuntimeVersions

_LINKS_FIRST: Final = (1, 1, 3)
_LINKS_FIXED: Final = (1, 1, 7)
_LINKS_SYSTEMD: Final = 240
_RELOAD_FIXED: Final = (1, 2, 5)
_RELOAD_SYSTEMD: Final = 230
_UPDATE_FIXED: Final = (1, 0, 0)
_NAMED_MOST: Final = 3


class VersionVerdict(NamedTuple):
    """Whether what runs here does it."""

    says: Literal["yes", "maybe", "no", "unknown"]
    who: str
    """``runc 1.1.5+ds1``, with the doubt where there is one; empty when unknown."""

    @property
    def is_possible(self) -> bool:
        """Unless it is certain that nothing here does it."""
        return self.says != "no"


UNKNOWN: Final = VersionVerdict("unknown", "")


def skips_links(versions: RuntimeVersions | Unread) -> VersionVerdict:
    """F4: rules of devices without a /dev/char link are left out."""
    if isinstance(versions, Unread):
        return UNKNOWN
    systemd = versions.systemd
    if systemd is not None and systemd < _LINKS_SYSTEMD:
        return VersionVerdict("yes", f"systemd {versions.systemd_text}")
    found = _verdict(versions, lambda one: _is_within(one, _LINKS_FIRST, _LINKS_FIXED))
    # Without systemd's version nothing is certain about the others.
    return UNKNOWN if found.says == "no" and systemd is None else found


def always_reloads(versions: RuntimeVersions | Unread) -> VersionVerdict:
    """F5: its units always want a daemon-reload."""
    if isinstance(versions, Unread):
        return UNKNOWN
    if versions.systemd is not None and versions.systemd < _RELOAD_SYSTEMD:
        return VersionVerdict("no", f"systemd {versions.systemd_text}")
    return _verdict(versions, lambda one: _is_within(one, (0, 0, 0), _RELOAD_FIXED))


def rewrites_on_update(versions: RuntimeVersions | Unread) -> VersionVerdict:
    """F6: an update of a container writes its device rules anew."""
    if isinstance(versions, Unread):
        return UNKNOWN
    return _verdict(versions, lambda one: _is_within(one, (0, 0, 0), _UPDATE_FIXED))


def _is_within(one: Runtime, first: tuple[int, int, int], fixed: tuple[int, int, int]) -> bool:
    """From ``first`` on and before ``fixed``; a candidate of the latter is before it."""
    is_before = one.version < fixed or (one.version == fixed and one.is_candidate)
    return one.name == "runc" and first <= one.version and is_before


def _verdict(versions: RuntimeVersions, is_meant: Callable[[Runtime], bool]) -> VersionVerdict:
    told = [one for one in versions.runtimes if one.path in versions.bundle_paths]
    found = told or list(versions.runtimes)
    if not found:
        return UNKNOWN
    bad = [one for one in found if is_meant(one)]
    if not bad:
        return VersionVerdict("no", _names(found))
    if len(bad) < len(found):
        others = _names(one for one in found if one not in bad)
        return VersionVerdict("maybe", f"{_names(bad)} (there is {others} too)")
    if all(one.is_distribution for one in bad):
        return VersionVerdict("maybe", f"{_names(bad)} (its distribution may have mended that)")
    return VersionVerdict("yes", _names(bad))


def _names(some: Iterable[Runtime]) -> str:
    return ", ".join(list(dict.fromkeys(f"{one.name} {one.text}" for one in some))[:_NAMED_MOST])
