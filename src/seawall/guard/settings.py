# SPDX-License-Identifier: Apache-2.0
"""The guard's settings as plain values.  ``guard/config.py`` reads the TOML file into them, in
a process that ends before the guard locks its memory.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

Mode: TypeAlias = Literal["observe", "enforce"]
OverLimit: TypeAlias = Literal["report", "kill", "clamp"]


class Settings(NamedTuple):
    """Every key's meaning, bounds and default stand in ``guard/keys.py``.  Bytes, seconds."""

    mode: Mode = "observe"
    scope: tuple[str, ...] = ("/kubepods.slice", "/kubepods")
    """Cgroup subtrees outside which nothing is ever done; ``/`` is all."""
    protect: tuple[str, ...] = ()
    """Names or cgroup paths with ``*``, beside those that are always protected."""
    unprotect: tuple[str, ...] = ()
    """Of what is protected by its role (not: outside the scope, ourselves): may be acted on."""
    stalled: tuple[str, ...] = ()
    """Cgroups whose standstill counts (kubelet, runtime, sshd are found by themselves)."""
    act_fraction: float = 0.06
    """The node is short below this share of its memory."""
    act_at_most_bytes: int = 2 << 30
    """And never before so little is left, however large the node."""
    target_fraction: float = 0.04
    """So much more than that has to come back."""
    freeze_seconds: float = 2.0
    hold_suspects: bool = True
    """Who could hold what nobody owns stands still until it is known, as long at most."""
    terminate_seconds: float = 5.0
    """Grace after SIGTERM when there is time; 0: kill at once."""
    kills_per_minute: int = 6
    verify_seconds: float = 3.0
    """So long the memory has to come back before the next is chosen."""
    over_limit: OverLimit = "report"
    over_limit_opt_in: tuple[str, ...] = ()
    """Names or cgroup paths with ``*`` for which ``kill`` or ``clamp`` holds."""
    over_limit_seconds: float = 10.0
    """So long the overrun has to last."""
    stuck: bool = True
    """A container stuck at its limit is killed as a whole."""
    stuck_seconds: float = 60.0
    tick_least_seconds: float = 0.1
    tick_most_seconds: float = 20.0
    self_test_seconds: float = 300.0
    watch: bool = True
    """The watcher process: claims, names, tracing."""
    pin: tuple[str, ...] = ()
    """Whose program text stays in memory; see ``pinner/program_choice.py``.  Empty: nothing."""
    pin_at_most_bytes: int = 128 << 20
    """And never over 5 % of memory."""
    pin_slices: tuple[str, ...] = ()
    """Cgroups (v2) whose present use is protected by memory.low."""
    blackbox: str = "/var/lib/seawall/blackbox"
    """The file that the recorder process writes; empty: there is no recorder."""
    blackbox_size_bytes: int = 64 << 20
    run_after_kill: str = ""
    """A command, given the decision as JSON on standard input."""
    textfile: str = ""
    """A file for the node exporter's textfile collector."""
    termination_message: bool = True
    kubelet_root: str = ""
    """The kubelet's ``--root-dir``; empty: where it usually is."""
    datagram_to: str = ""
    """``HOST:PORT``: one UDP datagram at every trigger."""
    pmsg: bool = False
    run_on_decision: str = ""
    """As ``run_after_kill``, at every decision: acted, only observed, refused, reported.  New
    fields stand at the end, with a default: boxes hold the policy state of earlier versions.
    """
    rescue: bool = False
    """A guard that only observes carries out a rescue order."""
    quarantine: bool = False
    """Pods of the node's quarantine list are killed when they start (``mode`` enforce)."""
    job_output: bool = True
    """A killed Slurm job has one line of it in its own error output."""
    job_comment: bool = False
    job_end_whole: bool = False
    """Of several nodes, on one of which the guard ended it: by scancel."""
    slurm_commands: str = ""
    slurm_conf: str = ""
    user_slices: bool = False
    """Each ``user-UID.slice`` is one workload, of which a part is ended (decision 0048)."""


START_ONLY: Final = {
    "watch": "watch", "blackbox": "blackbox", "blackbox_size_bytes": "blackbox_size",
    "user_slices": "user_slices",
}  # fmt: skip
"""Fields that a guard which runs keeps, for its processes were started by them; and their keys."""


def first_name(settings: Settings) -> tuple[str, str] | None:
    """The first key that names a pod, and the name: only the watcher knows names, and without
    one it would protect nobody.  None: all are cgroup paths.
    """
    for key in ("protect", "unprotect", "over_limit_opt_in"):
        for word in getattr(settings, key):
            if word[0] not in "/*":
                return key, word
    return None
