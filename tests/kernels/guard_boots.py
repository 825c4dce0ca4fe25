"""Many scenarios over few boots, two VMs at a time: for the tests, the campaign and the bench."""

import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.kernels import vm
from tests.kernels.guard_node import GUARD, Killer, Report, run_scenarios
from tests.kernels.guard_scenarios import Scenario

NODE_LINE = "node"
"""Of a test's properties: ``Report.line``, shown in the end (``conftest.py``)."""
VMS_AT_A_TIME = 2
SCENARIOS_A_BOOT = 4


def boots(scenarios: Sequence[Scenario], most: int = SCENARIOS_A_BOOT) -> list[list[Scenario]]:
    """Those that want the same node together, at most so many; their order is kept.

    What leaves the node changed ends its boot.
    """
    groups: list[list[Scenario]] = []
    for scenario in scenarios:
        for group in groups:
            is_open = len(group) < most and not group[-1].spoils_node
            if group[0].node == scenario.node and is_open:
                group.append(scenario)
                break
        else:
            groups.append([scenario])
    return sorted(groups, key=len, reverse=True)


def run_boot(image: vm.Image, group: Sequence[Scenario], killer: Killer) -> list[Report]:
    with tempfile.TemporaryDirectory(prefix="seawall-node-") as folder:
        return run_scenarios(image, group, killer, Path(folder))


def run_all(
    image: vm.Image, scenarios: Sequence[Scenario], killers: Sequence[Killer] = (GUARD,),
    *, vms: int = VMS_AT_A_TIME, a_boot: int = SCENARIOS_A_BOOT, until: float = math.inf,
    chance: random.Random | None = None,
) -> Iterator[Report]:  # fmt: skip
    """As they come; ``vms`` at a time, ``a_boot`` scenarios in each; ``until``: monotonic time
    after which no boot begins; ``chance``: shuffles the boots, so that those that were run are
    a sample of all.
    """

    def run(group: Sequence[Scenario], killer: Killer) -> list[Report]:
        return run_boot(image, group, killer) if time.monotonic() < until else []

    wanted = [
        (group, killer)
        for killer in killers
        for group in boots([s for s in scenarios if fits(s, killer)], a_boot)
    ]
    if chance is not None:
        chance.shuffle(wanted)
    with ThreadPoolExecutor(vms) as pool:
        jobs = [pool.submit(run, *one) for one in wanted]
        for job in as_completed(jobs):
            yield from job.result()


def fits(scenario: Scenario, killer: Killer) -> bool:
    """A peer that knows only cgroup v2 is not asked for more."""
    return not killer.is_v2_only or scenario.cgroup == "v2"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
