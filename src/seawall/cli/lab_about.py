# SPDX-License-Identifier: Apache-2.0
"""What ``seawall lab --help`` says."""

from typing import Final

VERBS: Final = {
    "swarm": "many small processes against a limit: which one would you kill?",
    "fill": "page cache by writing: full to the limit, and nothing is wrong",
    "hog": "one process takes more anonymous memory than its limit",
    "thrash": "many programs with much code: pushed out and read again, for ever",
    "rings": "uncounted memory that no limit stops: packet rings",
    "egl": "framebuffers that are never freed, through EGL and OpenGL ES",
    "cuda-host": "host memory pinned by the CUDA driver",
    "cuda-managed": "managed memory of the CUDA driver, touched on the host",
    "clean": "remove what a lab that was killed has left",
}
UNCOUNTED: Final = ("rings", "egl", "cuda-host", "cuda-managed")
COMMON: Final = """\
Before: what dead runs left beside it is removed (no process is killed for
  that); a note of the run goes to /run/seawall/lab (of a user:
  $XDG_RUNTIME_DIR); a cgroup seawall-lab-PID-START is made below the cgroup of
  this shell (or --parent), in each tree that is used (v1: memory, pids, blkio);
  its limits of memory, swap and pids are set and read back. Each process gets
  nice 10, enters it and checks that it is in before it takes anything; a
  negative oom_score_adj that it inherited becomes 0. This program stays
  outside; in a delegated cgroup of v2 it steps into one beside and hands memory
  on, until the end. --dry-run says all of it for this machine.
During: one line a second. Look at it with `seawall why` and `seawall pods`.
After --for SECONDS, at ctrl-C or when this program dies: every process is
  killed, cgroups and note are removed, and it is checked that they are gone. If
  this program is stopped, the processes end themselves a second after --for.
  Only a kill -9 of this program leaves its cgroups, empty, and its note:
  seawall lab clean, or the next run, removes them.
Refused: when the limit is more than half of what this machine has left, or a
  limit above; with --yes-large, more than nine tenths of it, or all of a limit
  above. Its limit kills only processes of the lab's own cgroup.
"""
_TRIED: Final = "Tried on cgroup v1 (Linux 6.18) and v2 (6.1).\n"
_UNCOUNTED: Final = """\
No limit holds this memory, so the lab does: never more than half of
MemAvailable, whatever is said, and it stops when others have brought that down.
It is the kernel's or the driver's, and given back when the process ends. A
driver that keeps it nevertheless is a find: MemAvailable before and after is
reported, and lab clean cannot help.
Beside it: seawall memory --who --for 10 while it takes, then seawall memory,
seawall pods.
"""
ABOUT: Final = {
    "swarm": """\
Starts --processes N processes; each takes --each bytes of anonymous memory and
sleeps. Together they want more than --limit: the kernel kills one after the
other, and each frees little. On kernels before 3.6 and on CentOS 6 it hangs
instead, and with --killer-off (cgroup v1) on every kernel. Nothing is written
to a disk, but to swap with --swap. Each process costs about 120 KiB beside the
limit. The kernel log gets reports of the kills.
"""
    + _TRIED,
    "fill": """\
Writes one file of --size bytes into --folder and keeps it open, without a name,
so it is gone when the lab is. The cgroup fills to --limit with page cache that
can be dropped; nothing is killed. It looks like "memory that is not released".
"""
    + _TRIED,
    "hog": """\
One process takes --size bytes of anonymous memory, page by page, and holds
them. Beyond --limit the kernel kills it. --step takes so much each second, to
watch it come; --respawn starts it again and again, as a supervisor does.
Nothing is written to a disk, but to swap with --swap. The kernel log gets a
report of each kill.
"""
    + _TRIED,
    "thrash": """\
Writes one file of --programs times --code bytes into --folder, without a name.
Each program maps its part as code and runs through all of it when it is its
turn. Together they do not fit into --limit: what one reads pushes out what
another needs, and everybody waits for the disk. The disk is held to --iops
reads a second for the lab's cgroup alone where the kernel can (blkio of v1, io
of v2); it is said where it cannot. A node without memory looks like this.
"""
    + _TRIED,
    "rings": """\
One process takes --size bytes of packet rings, --rate each second, and holds
them: pages of the kernel that need CAP_NET_RAW and nothing else, and that no
cgroup counts, so --limit does not stop it. It captures no packet, and has a
network namespace of its own, as a pod has, where it may make one.
"""
    + _TRIED
    + _UNCOUNTED,
    "egl": """\
One process makes framebuffers of 16 MiB, each with a texture, clears them and
never deletes them, until there are --size bytes: a renderer's leak. What the
driver takes for that in the machine's memory is as a rule in no process and in
no cgroup. A driver that draws in software takes it from the process, where it
is counted: that is said, and then --limit may kill it. Needs libEGL.so.1,
libGLESv2.so.2 and a driver behind them. Tried on cgroup v1 with Mesa's software
driver, on no GPU.
"""
    + _UNCOUNTED,
    "cuda-host": """\
One process has the CUDA driver pin --size bytes of host memory
(cuMemHostAlloc), --rate each second, and holds them. Whether a cgroup counts
them depends on the driver: the report says which it was. Needs libcuda.so.1.
Tried on cgroup v1 with a stand-in for it, on no GPU.
"""
    + _UNCOUNTED,
    "cuda-managed": """\
One process takes --size bytes of managed memory (cuMemAllocManaged), --rate
each second, and writes them on the host. Whether a cgroup counts them depends
on driver and kernel: the report says which it was. Never more than half of
what the device has free either. Needs libcuda.so.1. Tried on cgroup v1 with a
stand-in for it, on no GPU.
"""
    + _UNCOUNTED,
    "clean": """\
Removes cgroups seawall-lab-* (in every mounted tree), notes, and files in
/var/tmp, /tmp and the folders that the notes name, of runs whose program is
dead: a run holds locks on what it made, so one that goes on is not touched, in
whatever namespace it is. What a delegated run handed on is taken back. Nothing
is killed: a cgroup with a process in it stays, and that is said (exit 2).
""",
}
