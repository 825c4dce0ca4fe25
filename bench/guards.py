"""`make bench-guards`: the same nodes under no guard, each peer and Seawall; a Markdown table.

``python -m bench.guards [--scenario NAME]... [--killer LABEL]... [--mix MIX]... [--runs N]``.
All of it takes a day; ``--tail`` shortens how long the canary is looked at afterwards.
"""

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kernels import built_modules, guard_peers, vm
from tests.kernels.guard_boots import SCENARIOS_A_BOOT, run_all, say
from tests.kernels.guard_node import GUARD, NOBODY, Killer, Report, run_tenant
from tests.kernels.guard_scenarios import ALL, MIXES, TAIL_SECONDS, Scenario, mixed, on

KILLERS = (NOBODY, *guard_peers.ALL, GUARD)
NAMES = (
    "rings fast", "rings slow", "two culprits", "handed on", "anonymous bomb", "tmpfs bomb",
    "module holds", "victim in D", "a hundred pods", "thrash, few", "thrash, many",
    "module forgets", "small processes", "thrash in limit", "lockdown", "quiet",
)  # fmt: skip
SCENARIOS = {
    **{name: ALL[name] for name in NAMES},
    "rings fast, swap": on(ALL["rings fast"], swap="disk"),
    "rings fast, zram": on(ALL["rings fast"], swap="zram"),
}
HEAD = (
    "| scenario | guard | runs | innocents killed, by whom | culprit | canary served |"
    " longest stall | memory back |\n|---|---|---|---|---|---|---|---|"
)


def label(killer: Killer) -> str:
    return killer.label or killer.name


def row(name: str, killer: str, reports: Sequence[Report]) -> str:
    """One line, as it came out: also where nobody is blamed because nothing could be proved."""
    hands = Counter(death.by for report in reports for death in report.bystanders)
    names = sum(hands.values()) / len(reports)
    told = ", ".join(f"{count} by {hand}" for hand, count in hands.most_common())
    culprits = Counter(
        death.by for report in reports for death in report.deaths
        if death.name in report.scenario.victims
    )  # fmt: skip
    canaries = [report.told["canary"] for report in reports]
    served = sum(c["served"] for c in canaries) / sum(c["slots"] for c in canaries)
    dead = sum(c["died_at"] is not None for c in canaries)
    stall = max(c["longest_stall_seconds"] for c in canaries)
    backs = [r.back_seconds for r in reports if r.back_seconds is not None]
    back = f"{statistics.median(backs):.1f} s" if backs else "-"
    return (
        f"| {name} | {killer} | {len(reports)} | {names:.1f} each"
        f"{f' ({told})' if told else ''} | {', '.join(f'{n} by {w}' for w, n in culprits.items())}"
        f" | {served:.1%}{f', died {dead} times' if dead else ''} | {stall:.1f} s | {back} |"
    )


def tenant(image: vm.Image, folder: Path) -> int:
    """Microseconds, in turns: the spread between turns of a kind is the noise."""
    for turn in run_tenant(image, folder):
        words = [f"{name} {value * 1e6:.1f} us" for name, value in turn.items() if "_p" in name]
        say(f"{'with' if turn['is_on'] else 'without'} the guard: {', '.join(words)}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    parser.add_argument("--killer", action="append", choices=[label(k) for k in KILLERS])
    parser.add_argument("--mix", action="append", choices=MIXES, help="default: all three")
    parser.add_argument("--runs", type=int, default=1, help="of each mix")
    parser.add_argument("--tail", type=float, default=TAIL_SECONDS, help="seconds after the end")
    parser.add_argument("--tenant", action="store_true", help="what the guard costs a tenant")
    given = parser.parse_args()
    if why := vm.missing() or built_modules.missing() or guard_peers.missing():
        say(why)
        return 2
    killers = [k for k in KILLERS if not given.killer or label(k) in given.killer]
    say(f"{time.strftime('%Y-%m-%d')}, QEMU (TCG), 1.5 GiB, {platform.node()}\n\n{HEAD}")
    with tempfile.TemporaryDirectory(prefix="seawall-bench-") as folder:
        image = vm.build_image(Path(folder) / "image", guard_peers.add)
        if given.tenant:
            return tenant(image, Path(folder))
        # Who is chosen by oom_score_adj depends on the mix: each of them, or none is told.
        rows: dict[str, list[Scenario]] = {
            name: [
                on(mixed(SCENARIOS[name], 1 + n), mix=mix, tail_seconds=given.tail)
                for n in range(given.runs)
                for mix in given.mix or MIXES
            ]
            for name in given.scenario or SCENARIOS
        }
        for killer in killers:
            compare(image, killer, rows)
    return 0


def compare(image: vm.Image, killer: Killer, rows: Mapping[str, Sequence[Scenario]]) -> None:
    """A line for each scenario; those that want the same node share a boot."""
    a_boot = 1 if killer.needs_systemd else SCENARIOS_A_BOOT
    wanted = [scenario for some in rows.values() for scenario in some]
    came = {
        report.scenario.id: report
        for report in run_all(image, wanted, [killer], vms=1, a_boot=a_boot)
        if report.raw
    }
    for name, some in rows.items():
        if reports := [came[scenario.id] for scenario in some if scenario.id in came]:
            say(row(name, label(killer), reports))
        else:
            say(f"| {name} | {label(killer)} | nothing came back |")


if __name__ == "__main__":
    sys.exit(main())
