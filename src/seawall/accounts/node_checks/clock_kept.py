# SPDX-License-Identifier: Apache-2.0
"""A clock that nobody keeps: certificates, munge and file systems fail one after the other."""

from collections.abc import Iterator, Mapping

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import JSON


def look(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """By what the kernel was told by its time daemon."""
    if wanted.clock and isinstance(answer, Mapping) and answer.get("is_kept") is False:
        yield NodeFault("the clock is not synchronised")
