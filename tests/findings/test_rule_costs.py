# SPDX-License-Identifier: Apache-2.0
"""Which rules are judged first where everything is slow: the order hangs on the topics' costs."""

import re
from pathlib import Path
from typing import Any

import pytest

from seawall.accounts.claims.claims import Claims
from seawall.accounts.claims.shadow_charge import ShadowCharges
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.drivers.driver_holders import DriverHolders
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.rule import load_rules
from seawall.findings.rule_costs import cost_of, cost_of_topic, order
from seawall.readings.command_lines import CommandLines
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.node_daemons import NodeDaemons
from seawall.readings.pressure import HostPressure
from seawall.readings.process import Processes
from seawall.readings.process_reads import ProcessReads
from seawall.readings.process_status import ProcessStatuses
from seawall.readings.swaps import Swaps
from seawall.readings.sysctl_vm import VmSysctls
from seawall.readings.vmstat import Vmstat
from seawall.readings.zoneinfo import Zoneinfo

SOURCE = Path(__file__).parents[2] / "src/seawall"
SMALL_FILES = (Kernel, Meminfo, Vmstat, Zoneinfo, HostPressure, VmSysctls, Swaps)
EACH_PROCESS = (
    ProcessStatuses, CommandLines, NodeDaemons, ProcessReads, Claims, ShadowCharges,
    DriverHolders, DeviceTable,
)  # fmt: skip


@pytest.mark.parametrize(
    ("topics", "cost"), [(SMALL_FILES, 0), ((Processes, Headroom, Ledger), 1), (EACH_PROCESS, 2)]
)
def test_what_a_topic_costs(topics: tuple[Any, ...], cost: int) -> None:
    assert {topic.__name__: cost_of_topic(topic) for topic in topics} == {
        topic.__name__: cost for topic in topics
    }


def test_a_cost_stands_beside_what_it_is_the_cost_of() -> None:
    """Elsewhere nobody reads it."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    having = [path for path, text in texts.items() if re.search(r"^COST\b", text, re.MULTILINE)]
    assert len(having) == len(SMALL_FILES) + len(EACH_PROCESS)
    assert all(re.search(r"^def (read|account)\(", texts[path], re.MULTILINE) for path in having)


def test_cheap_rules_come_first_and_of_them_those_of_the_node() -> None:
    rules = sorted(load_rules(), key=order)
    costs = [cost_of(rule) for rule in rules]
    assert costs == sorted(costs)
    assert {0, 1, 2} == set(costs)
    ids = [rule.id for rule in rules]
    assert ids.index("SW106") < ids.index("SW101") < ids.index("SW401")
