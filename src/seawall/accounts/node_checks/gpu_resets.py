# SPDX-License-Identifier: Apache-2.0
"""GPUs that need a reset, and memory of a GPU that no process holds: a driver kept it of a job."""

from collections.abc import Iterator, Mapping
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import JSON
from seawall.words import size

KEPT_BYTES: Final = 2 << 30
"""More than any driver and its reserve take on an idle GPU."""


def look(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """By the driver's own library."""
    if not isinstance(answer, Mapping):
        return
    problem, devices = answer.get("problem"), answer.get("devices")
    if isinstance(problem, str):
        yield NodeFault(f"the driver cannot be asked: {problem}")
        return
    rows = [row for row in devices if isinstance(row, Mapping)] if isinstance(devices, list) else []
    if wanted.gpus is not None and len(rows) < wanted.gpus:
        yield NodeFault(f"the driver has {len(rows)} of {wanted.gpus} GPUs")
    for row in rows:
        index = row.get("index")
        name = f"GPU {index if isinstance(index, int) else '?'}"
        if isinstance(row.get("problem"), str):
            yield NodeFault(f"{name}: {row.get('problem')}")
            continue
        if row.get("remap_failed") is True:
            yield NodeFault(f"{name}: a row of its memory could not be remapped")
        elif row.get("remap_pending") is True:
            yield NodeFault(f"{name}: a row of its memory waits for a reset to be remapped")
        count = row.get("uncorrected")
        if isinstance(count, int) and count:
            yield NodeFault(f"{name}: {count} errors of memory that could not be corrected")


def kept(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Used, and no process of any container or of the host uses that GPU."""
    del wanted
    devices = answer.get("devices") if isinstance(answer, Mapping) else None
    for row in devices if isinstance(devices, list) else ():
        if not isinstance(row, Mapping) or row.get("has_processes") is not False:
            continue
        used = row.get("used")
        if isinstance(used, int) and used >= KEPT_BYTES:
            yield NodeFault(f"GPU {row.get('index')}: {size(used)} in use by no process")
