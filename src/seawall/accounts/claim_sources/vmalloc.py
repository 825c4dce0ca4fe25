# SPDX-License-Identifier: Apache-2.0
"""vmalloc by who asked for it: in the line ``vmalloc``, by driver or symbol, no workload.

Thread stacks have a line of their own, packet rings a source (``packet_rings.py``).  Whether a
cgroup is charged is up to each caller.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.node_memory.ledger_vmalloc import STACK_CALLERS, counts
from seawall.accounts.packet_rings.ring_places import is_of_ring
from seawall.readings.kernel import Kernel
from seawall.readings.vmallocinfo import PATH, Vmallocinfo

_SHOWN_MOST: Final = 8
_LEAST_BYTES: Final = 16 << 20
_MISSING: Final = "which workload made the kernel do it"


def claims(kernel: Kernel, vmallocinfo: Vmallocinfo) -> SourceClaims:
    """The largest few; what is small says nothing."""
    held: dict[tuple[str, str | None], int] = {}
    for area in vmallocinfo.areas:
        caller = area.caller or "an unnamed caller"
        if area.pages and counts(area) and caller not in STACK_CALLERS and not is_of_ring(caller):
            key = (area.module or caller, area.module)
            held[key] = held.get(key, 0) + area.pages * kernel.page_size
    large = sorted(held.items(), key=lambda item: (-item[1], item[0][0]))
    return SourceClaims(tuple(_claims(large[:_SHOWN_MOST])))


def _claims(large: list[tuple[tuple[str, str | None], int]]) -> Iterator[Claim]:
    for (name, module), size in large:
        if size < _LEAST_BYTES:
            return
        driver = module and f"{module} (kernel module)"
        yield Claim(
            holder=driver or f"{name}() of the kernel", workload=None, cgroup=None, driver=module,
            bytes=size, least_bytes=size, most_bytes=size, kind="vmalloc", within="vmalloc",
            is_counted=False, source=f"{PATH} {name}", confidence="exact", missing=_MISSING,
            give_back=f"what {name} was made for: bpf_* are BPF maps and programs, xt_* and nf_*"
            " netfilter tables" if module is None else f"what uses {module}, or unload it",
        )  # fmt: skip
