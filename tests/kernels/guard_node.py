"""A node of 1.5 GiB in QEMU that runs scenarios under a guard, a peer, or nobody.

One boot runs several scenarios, one after the other; each leaves the node as it found it, and
that is checked.  What comes back is judged here: who died, when, and by whose hand.
"""

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kernels import built_modules, guard_hands, vm
from tests.kernels.guard_scenarios import MIB, Scenario

HERE = Path(__file__).parent
GUEST = HERE / "guest"
PEERS = HERE / "peers"
MEMORY_MIB = 1536
SWAP_MIB = 512
TEXT_MIB = 24
BOOT_SECONDS = 40
SILENCE_SECONDS = 45
"""The runner says every five that it lives: an emulated CPU is stuck, or the whole node."""
BLACKBOX_SIZE = "16 MiB"
"""It holds one boot, and is written in full while the guard starts."""


@dataclass(frozen=True)
class Killer:
    """Who watches: how it starts, and what it says when it does."""

    name: str
    command: tuple[str, ...] = ()
    ready: str = ""
    adj: int = 0
    nice: int = 0
    cpu_weight: int = 100
    """CPUWeight= of its unit."""
    needs_systemd: bool = False
    is_v2_only: bool = False
    label: str = ""
    group: str = ""
    """Its own cgroup; empty: as a unit of its name."""


NOBODY = Killer("nobody")
GUARD = Killer(
    "guard", ("/bin/seawall", "guard", "run", "--config", "/etc/seawall/guard.toml"),
    "can kill: proved", adj=-999, nice=-20, cpu_weight=10_000, group="/seawall-guard.service",
)  # fmt: skip

# --- the image -------------------------------------------------------------------------


def add_to_image(root: Path) -> None:
    """The canary's program and text, the peers' packages, and where things are kept."""
    for name in ("opt/canary", "var/log/pods", "etc/seawall", "etc/systemd/system"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(root / "bin/busybox", root / "opt/canary/program")
    (root / "opt/canary/text").write_bytes(os.urandom(TEXT_MIB << 20))
    (root / "opt/text").write_bytes(os.urandom(96 << 20))
    built_modules.hold_tracepoints(root)


# --- running ---------------------------------------------------------------------------

_JOB = """
echo -1000 > /proc/$$/oom_score_adj
prepare() { %s
}
prepare
if [ -z "$NO_TRACING" ]; then
    mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null
    mount -t debugfs debugfs /sys/kernel/debug 2> /dev/null
fi
mkdir -p /etc/seawall && cp guard.toml /etc/seawall/
python3.11 -S -E -s PROGRAM spec.json
"""
_SWAP = {
    "none": ":",
    "disk": "mkswap /dev/vdd > /dev/null && swapon /dev/vdd",
    "zram": "echo 512M > /sys/block/zram0/disksize && mkswap /dev/zram0 > /dev/null"
    " && swapon /dev/zram0",
}


def guard_toml(scenario: Scenario) -> str:
    rows = {"mode": "enforce", "blackbox_size": BLACKBOX_SIZE, **scenario.guard}
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())


def run_scenarios(
    image: vm.Image, scenarios: Sequence[Scenario], killer: Killer, folder: Path
) -> list["Report"]:
    """One boot for all of them: they want the same node."""
    first = scenarios[0]
    is_systemd = first.systemd or killer.needs_systemd
    words = first.kernel_words + (" node.init=systemd" if is_systemd else "")
    if {s.node for s in scenarios} != {first.node}:
        raise ValueError("these scenarios want different nodes")
    files = {path.name: path.read_bytes() for path in GUEST.glob("guard_*.py")}
    files["kernel_loads.py"] = (HERE.parent / "end_to_end/kernel_loads.py").read_bytes()
    files |= {path.name: path.read_bytes() for path in PEERS.iterdir()}
    files["guard.toml"] = guard_toml(first).encode()
    files["fuse_server.py"] = (HERE.parent / "end_to_end/fuse_server.py").read_bytes()
    prepare = f"{_SWAP[first.swap]}\n{first.prepare}"
    if first.sees_rings:
        files["af_packet_diag.ko"] = packet_diag(image)
        prepare += "\ninsmod af_packet_diag.ko"
    if first.needs_module:
        files["seawall_pages.ko"] = built_modules.built()["seawall_pages.ko"]
        prepare += "\ninsmod seawall_pages.ko"
    spec: dict[str, Any] = {"killer": killer_spec(killer), "scenarios": [],
                            "follows_forks": first.follows_forks}  # fmt: skip
    for number, scenario in enumerate(scenarios):
        # Pods of the same name are others each time.
        spec["scenarios"].append({**scenario.spec(), "salt": f"{number}-{scenario.seed}"})
    files["spec.json"] = json.dumps(spec).encode()
    longest = sum(60 + s.most_seconds + s.tail_seconds for s in scenarios) + BOOT_SECONDS
    outcome = vm.run_job(
        image, job(prepare), folder, files=files, memory_mib=MEMORY_MIB, cgroup=first.cgroup,
        disk_iops=first.disk_iops, kernel_words=words,
        swap_mib=SWAP_MIB if first.swap == "disk" else 0, timeout_seconds=longest,
        silence_seconds=SILENCE_SECONDS,
    )  # fmt: skip
    return [Report(s, outcome, f"{n:03}.json", killer) for n, s in enumerate(scenarios)]


def job(prepare: str, program: str = "guard_run.py") -> str:
    return (_JOB % prepare).replace("PROGRAM", program)


def run_tenant(image: vm.Image, folder: Path) -> list[dict[str, Any]]:
    """What the guard costs a tenant: rows of turns without it and with it."""
    files = {path.name: path.read_bytes() for path in GUEST.glob("guard_*.py")}
    files["guard.toml"] = b'mode = "enforce"\n'
    files["spec.json"] = json.dumps({"killer": killer_spec(GUARD)}).encode()
    outcome = vm.run_job(
        image, job(":", "guard_tenant.py"), folder, files=files, memory_mib=MEMORY_MIB,
        timeout_seconds=180,
    )  # fmt: skip
    return list(json.loads(outcome.text("tenant.json")))


def packet_diag(image: vm.Image) -> bytes:
    """As the kernel loads it by itself on a node with modprobe."""
    home = Path("/lib/modules") / Path(image.kernel).name.removeprefix("vmlinuz-")
    return (home / "kernel/net/packet/af_packet_diag.ko").read_bytes()


def killer_spec(killer: Killer) -> dict[str, Any]:
    return {"name": killer.name, "command": list(killer.command), "ready": killer.ready,
            "adj": killer.adj, "nice": killer.nice, "cpu_weight": killer.cpu_weight,
            "is_unit": killer.needs_systemd,
            "group": killer.group or f"/system.slice/{killer.name}.service"}  # fmt: skip


# --- judging ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Death:
    """A workload, or the canary, that was killed or harmed."""

    name: str
    seconds: float
    """Since the culprit's start."""
    by: str


class Report:
    """What one scenario brought back."""

    def __init__(
        self, scenario: Scenario, outcome: vm.Outcome, file: str, killer: Killer = NOBODY
    ) -> None:
        self.scenario, self.console = scenario, outcome.console
        self.lost_console = outcome.lost_console
        self.killer = killer.label or killer.name
        self.raw: dict[str, Any] | None = None
        if file in outcome.files:
            self.raw = json.loads(outcome.files[file])
        self.logs = {name: data for name, data in outcome.files.items() if name.endswith(".log")}
        self.blackbox = outcome.files.get("blackbox")
        """Of the whole boot; None: there was none."""

    @property
    def told(self) -> dict[str, Any]:
        if self.raw is None:
            raise AssertionError(f"{self.scenario.name}: nothing came back\n{self.console[-5000:]}")
        return self.raw

    @property
    def deaths(self) -> list[Death]:
        """In order."""
        found = [death for row in self.told["loads"] if (death := self._death(row))]
        if (at := self.told["canary"]["died_at"]) is not None:
            found.append(Death("canary", at, self._hand(self.told["canary"])))
        return sorted(found, key=lambda death: death.seconds)

    def _death(self, row: dict[str, Any]) -> Death | None:
        ended, empty = row["leader_ended"], row["empty_at"]
        at = empty if row["is_culprit"] else (ended[0] if ended else empty)
        if at is None and not row["kernel_kills"]:
            return None
        return Death(row["name"], at if at is not None else -1.0, self._hand(row))

    def _hand(self, row: dict[str, Any]) -> str:
        """Whose it was: the guard's when its order was done, else the kernel's, else a peer's, as
        each says itself.
        """
        peer = str(self.told["killer"])
        if row["path"] in guard_hands.signalled(self._journal, is_done=True):
            return "guard"
        if guard_hands.interrupted(self._journal, row["path"]):
            return "guard"
        if hand := guard_hands.kernel_hand([text for _, text in self.told["kernel"]], row["path"]):
            return hand
        log = self.logs.get(f"{peer}.log", b"").decode(errors="replace")
        if guard_hands.is_killed(peer, log, row):
            return peer
        ended = row.get("leader_ended")
        return "itself" if ended and ended[1] not in {9, 15} else "?"

    @property
    def _journal(self) -> list[dict[str, Any]]:
        """Of the whole boot; no path comes twice in it."""
        return guard_hands.journal(self.told["killer_files"])

    @property
    def signalled(self) -> set[str]:
        """Whom the guard sent a signal, whatever came of it; a path that is no workload's as it
        is.
        """
        rows = [*self.told["loads"], {**self.told["canary"], "name": "canary"}]
        names = {row["path"]: str(row["name"]) for row in rows}
        paths = guard_hands.signalled(self.decisions)
        return {names.get(path, path) for path in paths}

    @property
    def bystanders(self) -> list[Death]:
        """All that died and were not meant to, whoever did it."""
        others = {*self.scenario.victims, *self.scenario.may_die}
        return [death for death in self.deaths if death.name not in others]

    @property
    def innocents(self) -> list[Death]:
        """Who should not have died; where the kernel may, it is not counted."""
        return [
            death for death in self.bystanders
            if not (self.scenario.kernel_may and death.by.startswith("kernel"))
        ]  # fmt: skip

    @property
    def is_right(self) -> bool:
        names = {death.name for death in self.deaths}
        is_whole = self.has_said and not self.not_reached and not self.told["never_held"]
        return not self.innocents and set(self.scenario.victims) <= names and is_whole

    @property
    def has_said(self) -> bool:
        """A guard told what the scenario wants told."""
        says = self.scenario.says
        if not says or self.killer != "guard":
            return True
        return any(re.search(says, words) for words in self.words)

    @property
    def words(self) -> list[str]:
        """``trigger: sentence`` of each line about a decision; ``unseen: ...``, of what its status
        says that it cannot see.
        """
        rows = [f"{row.get('trigger', row['kind'])}: {row['sentence']}" for row in self.decisions]
        status = json.loads(self.told["killer_files"].get("status.json", "{}"))
        return [*rows, *(f"unseen: {words}" for words in status.get("blind", []))]

    @property
    def not_reached(self) -> str:
        """What the scenario is about and was not there, and how much of it was; empty: it was."""
        memory = self.told["memory"]
        its = [row for row in self.told["loads"] if row["is_culprit"]]
        got = {
            "share of swap": memory["swap_least"],
            "MiB of huge pages": memory["huge_least"] / MIB,
            "hits of its limit": sum(row["limit_hits"] for row in its),
            "refaults": sum(row["refaults"] for row in its),
        }
        return ", ".join(
            f"{what} {got[what]:.4g} of {least:g}"
            for what, least in self.scenario.reaches.items() if got[what] < least
        )  # fmt: skip

    @property
    def by_guard(self) -> set[str]:
        return {death.name for death in self.deaths if death.by == "guard"}

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """Lines of the guard's journal, of this scenario's time."""
        return [row for row in self._journal if (row.get("seconds") or 0) >= self.told["go"]]

    @property
    def actions(self) -> list[str]:
        """What the guard really did to somebody: freeze, clamp, terminate, kill."""
        return [
            f"{row['outcome']['order']['step']} {row['outcome']['order']['name']}"
            for row in self.decisions
            if row.get("outcome") and not row["outcome"]["is_observed"]
        ]

    @property
    def first_actions(self) -> list[float]:
        """Seconds from each order to the first write or signal."""
        return [
            row["outcome"]["first_action_seconds"] for row in self.decisions
            if row.get("outcome") and row["outcome"]["is_done"]
            and not row["outcome"]["is_observed"]
        ]  # fmt: skip

    @property
    def invokers(self) -> list[dict[str, Any]]:
        """Who brought the kernel to kill for the whole node, each with the calls behind it."""
        rows: list[dict[str, Any]] = self.told["invokers"]
        return rows

    @property
    def guard_invokers(self) -> list[str]:
        """Those that are processes of the guard, by name or cgroup: ``who: gfp, calls``."""
        its = [
            row
            for row in self.invokers
            if row["comm"].startswith("seawall") or row["cgroup"] == GUARD.group
        ]
        return [f"{row['comm']} (pid {row['pid']}): {row['words']}: {' < '.join(row['calls'])}"
                for row in its]  # fmt: skip

    @property
    def calls_while_short(self) -> list[str]:
        """New tasks that processes of the guard made while hardly anything was left on the node."""
        short = self.told["memory"]["short"]
        return [
            f"{at:.1f} s: {who}: {what}" for at, who, what in self.told["calls"]
            if any(begin <= at <= end for begin, end in short)
        ]  # fmt: skip

    @property
    def guard_numbers(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of its own process: when it said that it was ready, and in the end."""
        rows = self.told["killer_at_ready"]
        if not rows:
            raise AssertionError(f"the guard was never ready\n{self.log_tail}")
        began = min(rows, key=lambda row: row["pid"])
        ended = [row for row in self.told["killer_processes"] if row["pid"] == began["pid"]]
        if not ended:
            raise AssertionError(f"the guard is gone\n{self.log_tail}")
        return began, ended[0]

    @property
    def guard_faults(self) -> list[dict[str, Any]] | str:
        """Its major faults since then, each with its place; in words: why that is not told."""
        began, _ = self.guard_numbers
        faults: list[dict[str, Any]] | str = self.told["killer_major_faults"][str(began["pid"])]
        return faults

    @property
    def has_another_guard(self) -> bool:
        """In its boot one was killed, by a scenario before it too, and another one started."""
        began = min((row["pid"] for row in self.told["killer_at_ready"]), default=0)
        is_gone = began not in {row["pid"] for row in self.told["killer_processes"]}
        return is_gone and b"".join(self.logs.values()).count(b" started, mode ") > 1

    @property
    def log_tail(self) -> str:
        """The last that was said by whoever watched."""
        return b"\n".join(self.logs.values()).decode(errors="replace")[-6000:]

    @property
    def served(self) -> float:
        canary = self.told["canary"]
        return float(canary["served"] / canary["slots"])

    @property
    def rates(self) -> dict[str, float]:
        """What each innocent that counts did a second: bytes, or processes forked."""
        return {row["name"]: row["done"] / self.told["seconds"] for row in self.told["loads"]
                if row["done"] and not row["is_culprit"]}  # fmt: skip

    @property
    def back_seconds(self) -> float | None:
        """From when memory was short to when it was back; None: it never was, or never came."""
        memory = self.told["memory"]
        if memory["low_at"] is None or memory["back_at"] is None:
            return None
        return float(memory["back_at"] - memory["low_at"])

    def line(self) -> str:
        """For a table."""
        told = self.told
        memory, canary = told["memory"], told["canary"]
        who = ", ".join(f"{d.name} {d.seconds:.1f} s ({d.by})" for d in self.deaths) or "nobody"
        back = self.back_seconds
        wait = "-" if back is None else f"{back:.1f} s"
        return (
            f"{self.scenario.name:16} {self.scenario.mix:15} seed {self.scenario.seed:<4}"
            f" {self.killer:18} {'right' if self.is_right else 'WRONG':5}"
            f" served {self.served:7.2%} stall {canary['longest_stall_seconds']:5.2f} s"
            f" back {wait:>6} least {memory['least'] >> 20:4} MiB: {who}"
            + ("" if self.has_said else f" [did not say {self.scenario.says!r}]")
            + (f" [not reached: {self.not_reached}]" if self.not_reached else "")
            + "".join(f" [{note}]" for note in told["notes"])
            + "".join(f" [OOM killer invoked by {who}]" for who in self.guard_invokers)
        )
