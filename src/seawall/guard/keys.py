# SPDX-License-Identifier: Apache-2.0
"""Every key of ``/etc/seawall/guard.toml``: the one place where a key is documented.

The reader (``guard/config.py``), ``seawall guard check`` and ``explain``, the page
docs/guard-keys.md and the example in packaging/ are made from this table or held against it.
The file is flat: ``mode = "enforce"`` means the same wherever in it the line stands.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.guard.settings import Settings

Kind: TypeAlias = Literal[
    "choice", "truth", "seconds", "fraction", "size", "count",
    "subtrees", "cgroups", "names", "command", "folder", "file", "textfile", "address",
]  # fmt: skip
"""names: names or cgroup paths, ``*`` allowed.  subtrees, cgroups: cgroup paths without ``*``;
of the first there is one at least."""


class Key(NamedTuple):
    """One key: what it is, what it may be, what it does."""

    name: str
    """As it stands in the file."""
    field: str
    """Of ``Settings``."""
    kind: Kind
    sentence: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def default(self) -> object:
        """In the units of ``Settings``."""
        return Settings._field_defaults[self.field]

    @property
    def expected(self) -> str:
        """What may stand there, in words."""
        between = f"from {_number(self.least)} to {_number(self.most)}"
        match self.kind:
            case "choice":
                return " or ".join(f'"{choice}"' for choice in self.choices)
            case "seconds":
                return f"seconds {between}"
            case "fraction":
                return f"a share {between} (0.06 is 6 %)"
            case "count":
                return f"a whole number {between}"
            case "size":
                least, most = self.least or 0, self.most or 0
                return f'bytes or a size such as "2 GiB", from {_size(least)} to {_size(most)}'
        return _EXPECTED[self.kind]


_COLUMNS: Final = 80
_EXPECTED: Final = {
    "truth": "true or false",
    "subtrees": 'a list of cgroup paths such as ["/kubepods.slice"], without "*"',
    "cgroups": 'a list of cgroup paths such as ["/system.slice/x.service"], without "*"',
    "names": 'a list of names or cgroup paths such as ["shop/*", "/system.slice/x.service"]',
    "command": 'a command with its whole path such as "/usr/local/bin/told --page", or ""',
    "folder": 'a whole path such as "/data/kubelet", or ""',
    "file": 'a whole path such as "/var/lib/seawall/blackbox", or ""',
    "textfile": 'a whole path that ends with .prom (the collector reads no other), or ""',
    "address": 'an address and a port such as "10.0.0.9:5140" or "[fd00::9]:5140", or ""',
}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _size(value: float) -> str:
    """A bound as it may be written in the file."""
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
        if value >= 1 << shift:
            return f"{value / (1 << shift):g} {unit}"
    return f"{value:g} bytes"


KEYS: Final = (
    Key("mode", "mode", "choice",
        "observe: decide, write it down, do nothing; enforce: do it. Stands only in this file.",
        choices=("observe", "enforce")),
    Key("scope", "scope", "subtrees",
        'The cgroup subtrees outside which nothing is ever done; "/" is the whole machine.'),
    Key("protect", "protect", "names",
        "Never acted on, beside what is always protected; a pod's name is NAMESPACE/POD."),
    Key("unprotect", "unprotect", "names",
        "May be acted on although its role or its oom_score_adj protects it: a CSI driver that you "
        "can lose.  One at -1000 only where it or its pod stands here by its whole name."),
    Key("stalled", "stalled", "cgroups",
        "Cgroups whose standstill counts (memory.pressure: cgroup v2 or a hybrid host), beside "
        "those of kubelet, runtime and sshd."),
    Key("act_fraction", "act_fraction", "fraction",
        "The node is short when its headroom is below this share of its memory.", 0.005, 0.5),
    Key("act_at_most", "act_at_most_bytes", "size",
        "And never before so little is left, however large the node; twice that at most, while it "
        "shrinks fast.  No more than so much has to come back over it.", 16 << 20, 1 << 40),
    Key("target_fraction", "target_fraction", "fraction",
        "What has to come back over that floor, as a share of the memory.", 0.0, 0.5),
    Key("freeze_seconds", "freeze_seconds", "seconds",
        "How long a workload is held still at most before it is killed; 0: never freeze.", 0, 2),
    Key("hold_suspects", "hold_suspects", "truth",
        "Where proof is still on its way and time runs out, the one that may hold most of what "
        "nobody owns stands still for as long at most; it is killed only if it is proved."),
    Key("terminate_seconds", "terminate_seconds", "seconds",
        "Grace after SIGTERM when there is time for it; 0: kill at once.", 0, 600),
    Key("kills_per_minute", "kills_per_minute", "count",
        "At most so many workloads are killed in a minute; beyond them as many again of those who "
        "are proved, one for each tenant of whom none was.", 1, 60),
    Key("verify_seconds", "verify_seconds", "seconds",
        "How long the memory has to come back before the next one is chosen.", 0.5, 60),
    Key("over_limit", "over_limit", "choice",
        "A workload that is over its own limit with its uncounted memory: report, "
        "kill it, or clamp (lower its limit by that much, cgroup v2).",
        choices=("report", "kill", "clamp")),
    Key("over_limit_opt_in", "over_limit_opt_in", "names",
        "The workloads for which over_limit kills or clamps; all others are reported."),
    Key("over_limit_seconds", "over_limit_seconds", "seconds",
        "How long it has to be over its limit first.", 1, 3600),
    Key("stuck", "stuck", "truth",
        "A container that hangs at its own limit, and that the kernel cannot end, is killed."),
    Key("stuck_seconds", "stuck_seconds", "seconds",
        "How long it has to hang first.", 5, 3600),
    Key("tick_least_seconds", "tick_least_seconds", "seconds",
        "The pause between two looks when the node is nearly short.", 0.02, 5),
    Key("tick_most_seconds", "tick_most_seconds", "seconds",
        "The pause in deep peace; the kernel's triggers wake it before that. Below 10 it looks at "
        "free memory so often, and at everything every tenth time, at least every 10 s.", 0.1, 20),
    Key("self_test_seconds", "self_test_seconds", "seconds",
        "How often it proves, on a child of its own, that it can kill.", 10, 86400),
    Key("watch", "watch", "truth",
        "The watcher: a second process that knows who holds driver memory, and the names. Without "
        "it only paths, scope and oom_score_adj protect. Read at the start only."),
    Key("pin", "pin", "names",
        'Whose program text stays in memory: "node" (kubelet, runtimes, sshd, systemd, network, '
        "shells), or programs, paths, units and pods; nothing by default. See docs/pins.md."),
    Key("pin_at_most", "pin_at_most_bytes", "size",
        "At most so much of it, and never over 5 % of the memory.", 1 << 20, 1 << 40),
    Key("pin_slices", "pin_slices", "names",
        "Cgroups whose present use memory.low protects (cgroup v2), such as /system.slice; put "
        "back at the end."),
    Key("blackbox", "blackbox", "file",
        'The black box: a process of its own keeps there what was seen and done, for after the '
        'node has died; "": none. Read at the start only.'),
    Key("blackbox_size", "blackbox_size_bytes", "size",
        "The whole file, written beforehand; the oldest gives way. Read at the start only.",
        1 << 20, 4 << 30),
    Key("rescue", "rescue", "truth",
        "While it only observes: carry out a rescue order of the cluster (docs/guard.md), by its "
        "own judgement, on whom the order names and nobody else. One that enforces always does."),
    Key("quarantine", "quarantine", "truth",
        "Pods of the quarantine list on this node's disk are killed when they start, where it "
        "enforces; without it, and while it observes, it says that it would."),
    Key("run_after_kill", "run_after_kill", "command",
        "Run after a kill, with the decision as JSON on standard input; never waited for. In the "
        "DaemonSet it has to be in the image; the unit has a /tmp of its own."),
    Key("run_on_decision", "run_on_decision", "command",
        "Run at every decision, those that are only observed, refused or reported too, with it as "
        "JSON on standard input; likewise. packaging/hooks tells Slack, PagerDuty and others."),
    Key("textfile", "textfile", "textfile",
        "Metrics for the textfile collector of the node exporter. The unit may write to "
        "/var/lib/prometheus/node-exporter; another folder wants a drop-in with ReadWritePaths=. "
        "In the DaemonSet each of them wants a volume (hostPath) with its mount."),
    Key("termination_message", "termination_message", "truth",
        "One sentence in a killed container's termination message: kubectl describe shows it."),
    Key("kubelet_root", "kubelet_root", "folder",
        "The kubelet's --root-dir, where those messages are, if it is none of the usual ones."),
    Key("job_output", "job_output", "truth",
        "One line in the error output of a killed Slurm job, written as its user, where the job's "
        "script runs on this node; elsewhere, where job_comment or job_end_whole asks slurmctld, "
        "in the file that it names."),
    Key("job_comment", "job_comment", "truth",
        "The same line in the AdminComment of the job, as long as slurmctld takes it for running: "
        "by scontrol, which asks slurmctld."),
    Key("job_end_whole", "job_end_whole", "truth",
        "A Slurm job of several nodes whose part here was killed is ended on all of them, by "
        "scancel: else the others may wait in MPI for as long as the job may run."),
    Key("slurm_commands", "slurm_commands", "folder",
        "Where squeue, scontrol and scancel are, if in none of the usual folders."),
    Key("slurm_conf", "slurm_conf", "folder",
        "The slurm.conf that they are to use, if it is not the one that they were built for."),
    Key("user_slices", "user_slices", "truth",
        "On login nodes: all sessions and units of a user are one workload, user-UID.slice, and "
        "the one of them that took the memory is ended. The scope has to reach them "
        '(["/user.slice"]); root is never touched. Read at the start only.'),
    Key("datagram_to", "datagram_to", "address",
        "One UDP datagram goes there at every trigger: evidence that outlives the machine. It is "
        "sent when the orders were carried out, for to send takes memory.  Another address is used "
        "from the next start on."),
    Key("pmsg", "pmsg", "truth",
        "One line to /dev/pmsg0 at every trigger, where the platform keeps it over a reset "
        "(CONFIG_PSTORE_PMSG, which Debian's kernels lack)."),
)  # fmt: skip

BY_NAME: Final = {key.name: key for key in KEYS}


def toml_text(key: Key, value: object) -> str:
    """The value as it stands in a TOML file: ``"2 GiB"``, ``["/kubepods"]``, ``true``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_quoted(str(word)) for word in value)}]"
    if key.kind == "size" and isinstance(value, int):
        return _quoted(_exact_size(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def example() -> str:
    """The file with every key as it comes, commented out but for ``mode``."""
    lines = [
        "# Seawall's guard.  This file goes to /etc/seawall/guard.toml, root's and mode 0644.",
        "# What it means on a machine:  seawall guard explain",
        "# Is it right?                 seawall guard check FILE",
        "# Read again while it runs:    by itself, if it does no more than before; else",
        "#                              systemctl reload seawall-guard",
        "# A line that is commented out is as it comes.",
    ]
    for key in KEYS:
        lines.append("")
        lines += _comment(f"{key.sentence}  Expected: {key.expected}.")
        lines.append(
            f"{'' if key.name == 'mode' else '#'}{key.name} = {toml_text(key, key.default)}"
        )
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    lines = ["#"]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > _COLUMNS:
            lines.append("#")
        lines[-1] += f" {word}"
    return lines


def _exact_size(count: int) -> str:
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count}"


def _quoted(text: str) -> str:
    """A basic string of TOML: what is not printable ASCII is written as ``\\uXXXX``."""
    body = "".join(
        f"\\{char}" if char in '"\\' else char if " " <= char <= "~" else f"\\U{ord(char):08x}"
        for char in text
    )
    return f'"{body}"'
