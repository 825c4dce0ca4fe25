# SPDX-License-Identifier: Apache-2.0
"""A kernel that has stumbled, by its own mark, and one of another release than wanted.

Documentation/admin-guide/tainted-kernels.rst: the bits stay until the next boot.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread

TAINTED: Final = "/proc/sys/kernel/tainted"
RELEASE: Final = "/proc/sys/kernel/osrelease"
_BITS: Final = {
    4: "a machine check was reported",
    5: "a page of memory was found bad",
    7: "the kernel oopsed",
    14: "a processor was locked up",
}


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Since boot; modules from outside and warnings are no fault."""
    data = host.read(TAINTED, 64)
    if isinstance(data, Unread):
        yield unseen(data)
    elif data.strip().isdigit():
        for bit, words in _BITS.items():
            if int(data) >> bit & 1:
                yield NodeFault(f"{words} since boot (/proc/sys/kernel/tainted)")
    if wanted.kernel:
        release = host.read(RELEASE, 256)
        if isinstance(release, Unread):
            yield unseen(release)
        elif release.strip() != wanted.kernel.encode():
            found = release.decode("ascii", "replace").strip()
            yield NodeFault(f"the kernel is {found}, not {wanted.kernel}")
