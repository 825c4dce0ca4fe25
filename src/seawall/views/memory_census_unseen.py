# SPDX-License-Identifier: Apache-2.0
"""What a census could not see, and what would let it."""

from collections.abc import Iterator

from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.page_census import CGROUPS, PageCensus

_PROVIDE = {
    "refused": "root on the host",
    "absent": "the machine itself, with CONFIG_PROC_PAGE_MONITOR in its kernel",
    "not_captured": "the machine itself, while it runs: bundles hold no census",
    "no_answer": "another try: the count did not come back",
    "not_reached": "a longer --timeout",
}


def unseen_rows(counted: PageCensus | Unread, *, exact: bool) -> Iterator[NotSeen]:
    """Of this count; ``exact``: all frames were asked for."""
    if isinstance(counted, Unread):
        provide = _PROVIDE.get(counted.why, "report it with the lines above")
        yield NotSeen("page frames", f"{counted.path}: {counted.detail or counted.why}", provide)
        return
    if exact and not counted.is_whole:
        share = counted.frames_read / counted.frames
        why = f"time was over after {share:.0%} of them: the figures are an estimate"
        yield NotSeen("all page frames, as --exact asks", why, "a longer --timeout")
    if not counted.has_cgroups:
        words = f"{CGROUPS} is not there or may not be read"
        yield NotSeen("who pays for page frames", words, "a kernel with CONFIG_MEMCG, root")
    else:
        yield NotSeen(
            "who pays for slab", f"{CGROUPS} does not tell: it is paid for object by object",
            "seawall pods: the kernel memory of each cgroup",
        )  # fmt: skip
    yield NotSeen(
        "who holds kernel pages that nobody pays for", "page flags name no owner",
        "seawall memory, whose claims ask drivers and sockets; memory --who traces",
    )  # fmt: skip
