# SPDX-License-Identifier: Apache-2.0
"""All checks of a node that read files, in the order in which they are told.

A new one is a module beside this and a row here; its key is a key of slurm.toml.
"""

from typing import Final

from seawall.accounts.node_checks import (
    cpus,
    driver_version,
    edac,
    gpu_count,
    gpu_devices,
    huge_pages,
    infiniband,
    kernel_state,
    links,
    memory_size,
    missing_mounts,
    read_only,
    services,
    stuck_tasks,
    swap_use,
)
from seawall.accounts.node_checks.answer import NodeCheck

CHECKS: Final = (
    NodeCheck("read_only", read_only.look),
    NodeCheck("mounts", missing_mounts.look, is_lasting=False),
    NodeCheck("gpu", gpu_count.look),
    NodeCheck("gpu_devices", gpu_devices.look, is_lasting=False),
    NodeCheck("gpu_driver", driver_version.look),
    NodeCheck("memory", memory_size.look),
    NodeCheck("cpus", cpus.look),
    NodeCheck("smt", cpus.look_at_threads),
    NodeCheck("edac", edac.look),
    NodeCheck("kernel", kernel_state.look),
    NodeCheck("swap", swap_use.look),
    NodeCheck("services", services.look, is_lasting=False),
    NodeCheck("infiniband", infiniband.look, is_lasting=False),
    NodeCheck("links", links.look, is_lasting=False),
    NodeCheck("huge_pages", huge_pages.look, is_lasting=False, jobs_may=True),
    NodeCheck("stuck", stuck_tasks.look, is_lasting=False, jobs_may=True),
)
