# SPDX-License-Identifier: Apache-2.0
"""What the watcher process tells the guard: JSON objects, one a datagram of a socket pair.

=========  ======================================================================
``t``      further keys
=========  ======================================================================
ledger     seconds (monotonic), residual, error, quick (what ``sense.residual`` of the same
           meminfo would say), gpu_nodes [number] (NUMA nodes that are a GPU's memory: not in
           residual), armed (bool), blind (words: why less is learned), unexplained
           (bytes of its growth), grown (over its base)
blind      blind: in place of a ledger that could not be read
claims     seconds, rows [{cgroup, inode, certain, likely, most, sources}]: all of now; what is
           not in it is not claimed any more; refused [words]
groups     rows [{cgroup, inode, name, pod, class_rank, adj, request, role}]: new or changed;
           gone [cgroup]; role: why it is protected, or empty
stuck      rows [{cgroup, inode, why, returns, user_cpus}]: asked for by ``look``
hello      pid
=========  ======================================================================

The guard tells the watcher: ``{"t": "look", "cgroups": [...], "why": "node_short" | "stuck"}``
and ``{"t": "pace", "seconds": 0.5, "short": false}``; short: until it says otherwise the watcher
forks nothing and makes no tracer.  Whoever does not understand a message drops it: the
guard never waits for the watcher, nor trusts what is older than its deadline.
"""

DATAGRAM_MOST_BYTES = 60_000
"""A larger message is sent in parts: rows divided over several messages with ``part`` (0 to
``parts`` - 1, in order) and ``parts``."""
RECEIVED = memoryview(bytearray(DATAGRAM_MOST_BYTES + 1))
"""Where the guard receives, whoever speaks: a message is taken out before the next is awaited."""
