# SPDX-License-Identifier: Apache-2.0
"""What a rule costs, by what is read for it: cheap ones are judged first on a node that is dying.

A topic's cost stands beside its ``read`` or ``account``, as ``COST``: 0 for one small file, 2 where
every process is asked once more, partly through the expendable child.  Without it a reading costs
1, and a sum what its dearest part does.
"""

import sys
from functools import cache
from typing import Any, Final

from seawall.findings.finding import SEVERITIES
from seawall.findings.rule import Rule
from seawall.readings.snapshot import needs_of

_ORDINARY: Final = 1


def order(rule: Rule) -> tuple[int, bool, int, str]:
    """Cheap ones first; of equals those about the node, for they tell why all else is slow."""
    is_of_node = ".rules.node." in rule.module
    return cost_of(rule), not is_of_node, SEVERITIES.index(rule.severity), rule.id


def cost_of(rule: Rule) -> int:
    """Of what it cannot do without; the rest may be left out."""
    needs = needs_of(rule.judge)
    return max((cost_of_topic(need) for _, need, copes in needs if not copes), default=0)


def cost_of_topic(need: Any) -> int:
    """Of a topic, or of ``Window[topic]``."""
    cost: int = _cost_of_class(next(iter(getattr(need, "__args__", ())), need))
    return cost


@cache
def _cost_of_class(topic: Any) -> int:
    module = sys.modules[topic.__module__]
    if hasattr(module, "COST"):
        return int(module.COST)
    account = getattr(module, "account", None)
    if account is None:
        return _ORDINARY
    return max((cost_of_topic(part) for _, part, _ in needs_of(account)), default=_ORDINARY)
