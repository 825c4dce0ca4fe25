"""`make rescue-campaign`: how many silent nodes an order brings back, and how soon.

``python -m tests.kernels.rescue_campaign --runs 21 --journal FILE``: nodes in QEMU whose guard only
observes, with ``rescue = true`` in its file, thrash until a real API server takes them for dead
(Ready Unknown).  Then a RescueOrder names whom their own report proved.  Three kinds of memory in
turn: packet rings that no cgroup counts, counted memory, half of each.  A row of the journal is one
node, and what stands in it is not run again.
"""

import argparse
import contextlib
import datetime as dt
import json
import math
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from tests.cluster.api_client import STRATEGIC, ApiClient, ApiError
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import API
from tests.cluster.kwok_nodes import condition, ready
from tests.cluster.plane_build import PlaneProblem, programs, version_wanted
from tests.cluster.test_agent import REPORTS, token_of
from tests.kernels import built_modules, vm
from tests.kernels.dying_nodes import (
    READY_SECONDS,
    SPACE,
    TIMES,
    TOML,
    Death,
    DyingNodes,
    add_to_image,
    registered,
)
from tests.kernels.guard_boots import say
from tests.kernels.guard_campaign import commit, read_journal
from tests.kernels.guard_scenarios import AT_WORK, SERVICES, Mix, fill
from tests.kernels.guard_scenarios import programs as texts
from tests.kernels.power_cut_node import Node, empty_ext4

KINDS = ("rings", "anonymous", "both")
MIX: Mix = "hog guaranteed"
"""As in the incident; another hog is soon ended by the kernel, and the node lives."""
SILENT_SECONDS = 240.0
PROOF_SECONDS = 60.0
BACK_SECONDS = 150.0
"""Ready again within so long after the order, or it was not brought back."""
ORDERS = f"{API}/rescueorders"


def drawn(kind: str, seed: int) -> Death:
    """Pace, room and disk by chance."""
    chance = random.Random(f"rescue {kind} {seed}")
    rate, room = chance.choice((8, 16, 40)), chance.choice((8, 12))
    hog = fill(kind, room, rate, limit_mib=1400) if kind != "rings" else fill(kind, room, rate)
    loads = (*SERVICES, *AT_WORK, *texts(4, 10), hog)
    return Death(f"{kind}-silence", seed, loads, MIX, rate, room, chance.choice((300, 500)))


class SilentNodes(DyingNodes):
    """Nodes that are ordered to end their culprit once the cluster takes them for dead."""

    toml = f"{TOML}rescue = true\n"
    kubelet_words = ("ready",)

    def rescue(self, death: Death) -> dict[str, Any]:
        """One row."""
        with (
            tempfile.TemporaryDirectory(prefix="seawall-rescue-") as name,
            self.plane.client() as client,
            registered(client, death.node),
        ):
            (Path(name) / "box.ext4").write_bytes(empty_ext4(Path(name)))
            token = token_of(client, SPACE, death.node)
            script, files = self.job_of(death), self.files_of(death, token)
            with self.booted(death, Path(name), script, files) as machine:
                try:
                    row = self._follow(machine, death, client)
                finally:
                    machine.kill()
                lines = [line for _, line in machine.lines]
        with contextlib.suppress(ApiError), self.plane.client() as client:
            client.delete(f"{ORDERS}/{death.node}")
        row |= {"id": death.id, "kind": death.kind, "seed": death.seed, "mix": death.mix,
                "rate_mib": death.rate_mib, "room_mib": death.room_mib,
                "disk_iops": death.disk_iops, "version": commit(),
                "load": round(os.getloadavg()[0], 1),
                "kernel_kills": sum("Killed process" in line for line in lines)}  # fmt: skip
        if row["ended"] != "back":
            row["console"] = "\n".join(lines)[-3000:]
        return row

    def _follow(self, machine: Node, death: Death, client: ApiClient) -> dict[str, Any]:
        try:
            machine.wait_for("lease renewed: 200", READY_SECONDS)
            client.patch(f"/api/v1/nodes/{death.node}/status",
                         {"status": {"conditions": [ready(0.0)]}}, STRATEGIC)  # fmt: skip
            machine.wait_for("=== go", READY_SECONDS)
        except TimeoutError:
            return {"ended": "not begun"}
        hog = next(line.split()[1] for _, line in machine.lines if line.startswith("hog "))
        began = time.monotonic()
        while state_of(client, death.node) != "Unknown":
            if machine.has_ended or machine.stamp_of("the hog is gone"):
                return {"ended": "died" if machine.has_ended else "alive"}
            if time.monotonic() > began + SILENT_SECONDS:
                return {"ended": "alive"}
            time.sleep(0.5)
        silent = time.monotonic()
        row: dict[str, Any] = {"silent_after": round(silent - began, 1)}
        report = proved_report(client, death.node, silent + PROOF_SECONDS)
        if report is None:
            return {**row, "ended": "nobody proved"}
        pods = [one["podUID"] for one in report["distress"]["culprits"] if one["isProved"]]
        row |= {"is_hog_named": hog in pods, "named": len(pods)}
        make_order(client, death.node, report["bootID"], pods)
        return {**row, **outcome(machine, death.node, client)}


def state_of(client: ApiClient, node: str) -> str:
    return str(condition(client.get(f"/api/v1/nodes/{node}")))


def proved_report(client: ApiClient, node: str, until: float) -> dict[str, Any] | None:
    while time.monotonic() < until:
        with contextlib.suppress(ApiError):
            report: dict[str, Any] = client.get(f"{REPORTS}/{node}")["report"]
            culprits = report.get("distress", {}).get("culprits", [])
            if any(one["isProved"] for one in culprits):
                return report
        time.sleep(0.5)
    return None


def make_order(client: ApiClient, node: str, boot_id: str, pods: Sequence[str]) -> None:
    ends = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=300)
    client.create(ORDERS, {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "RescueOrder",
        "metadata": {"name": node},
        "spec": {"nodeName": node, "bootID": boot_id, "podUIDs": list(pods),
                 "requestedBy": "campaign", "expiresAt": ends.strftime("%Y-%m-%dT%H:%M:%SZ")},
    })  # fmt: skip


def outcome(machine: Node, node: str, client: ApiClient) -> dict[str, Any]:
    """Seconds count from the order."""
    ordered = time.monotonic()
    row: dict[str, Any] = {"ended": "silent still", "answer": "", "ready_after": None}
    while (passed := time.monotonic() - ordered) < BACK_SECONDS:
        if machine.has_ended:
            return {**row, "ended": "died"}
        status = client.get(f"{ORDERS}/{node}").get("status", {})
        if status.get("state") and status["state"] != row["answer"]:
            row |= {"answer": status["state"], "answered_after": round(passed, 1),
                    "message": status.get("message", "")[:300]}  # fmt: skip
            row.setdefault("first_answer_after", round(passed, 1))
        if status.get("returnedBytes"):
            row["returned_mib"] = status["returnedBytes"] >> 20
        if row["ready_after"] is None and state_of(client, node) == "True":
            row |= {"ready_after": round(passed, 1), "ended": "back"}
        if row["ended"] == "back" and row["answer"] in ("Done", "Refused"):
            break
        time.sleep(0.2)
    return row


def conclude(rows: Sequence[dict[str, Any]]) -> int:
    """A line for each kind and one for all; 1 where an innocent was named, or none came back."""
    silent = [row for row in rows if "silent_after" in row]
    for kind in (*(f"{one}-silence" for one in KINDS), ""):
        if its := [row for row in silent if kind in ("", row["kind"])]:
            say(line(kind or "all", its))
    others = [f"{row['id']} ({row['ended']})" for row in rows if "silent_after" not in row]
    if others:
        say(f"never silent: {', '.join(others)}")
    is_wrong = any(row.get("is_hog_named") is False for row in silent)
    return int(is_wrong or not any(row["ended"] == "back" for row in silent))


def line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    back = [row for row in rows if row["ended"] == "back"]
    took = sorted(row["ready_after"] for row in back)
    fast = f"median {median(took):.0f} s (at most {took[-1]:.0f})" if took else "-"
    answers = sorted(row["first_answer_after"] for row in back if "first_answer_after" in row)
    said = f"{median(answers):.1f} s" if answers else "-"
    return (
        f"{name:18} {len(rows):3} silent, {len(back):3} back ({len(back) / len(rows):.0%}); from "
        f"the order to Ready {fast}; to the guard's first answer {said}"
    )


def wanted(runs: int) -> list[Death]:
    """The kinds in turn: who breaks off has some of each."""
    return [drawn(KINDS[n % len(KINDS)], n // len(KINDS) + 1) for n in range(runs)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--journal", type=Path, help="a line of JSON for each; is gone on with")
    parser.add_argument("--kind", choices=KINDS, help="this one alone")
    parser.add_argument("--at-once", type=int, default=1, help="so many nodes side by side")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no boot after that")
    given = parser.parse_args()
    if why := vm.missing() or built_modules.missing():
        say(why)
        return 2
    try:
        program, kwok = programs(version_wanted())
    except PlaneProblem as problem:
        say(str(problem))
        return 2
    until = time.monotonic() + given.seconds
    rows = read_journal(given.journal)
    done = {row["id"] for row in rows if row["ended"] != "not begun"}
    with (
        tempfile.TemporaryDirectory(prefix="seawall-rescue-") as folder,
        ControlPlane(program, TIMES, kwok=kwok) as plane,
    ):
        nodes = SilentNodes(plane, vm.build_image(Path(folder) / "image", add_to_image))
        deaths = [
            death for death in wanted(given.runs) if death.id not in done
            and given.kind in {None, death.kind.removesuffix("-silence")}
        ]  # fmt: skip
        lock = threading.Lock()

        def play(death: Death) -> None:
            if time.monotonic() > until:
                return
            row = nodes.rescue(replace(death))
            with lock:
                rows.append(row)
                said = {key: value for key, value in row.items() if key != "console"}
                say(f"{len(rows):3} {json.dumps(said)}")
                if given.journal:
                    with given.journal.open("a") as file:
                        file.write(json.dumps(row) + "\n")

        with ThreadPoolExecutor(given.at_once) as pool:
            for _ in pool.map(play, deaths):
                pass
    return conclude(rows)


if __name__ == "__main__":
    sys.exit(main())
