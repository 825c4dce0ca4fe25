# SPDX-License-Identifier: Apache-2.0
"""Every topic is found by its folder: one that is not would be in no bundle, unnoticed."""

import re
from pathlib import Path

from seawall.cli.topics import all_topics

SOURCE = Path(__file__).parents[2] / "src"
NOT_ASKED = {"seawall.accounts.devices.node_faults.faults"}
"""Made of readings that are asked anyway."""


def test_no_sum_is_left_out_of_a_bundle() -> None:
    having = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in (SOURCE / "seawall/accounts").rglob("*.py")
        if re.search(r"^def account\(", path.read_text(), re.MULTILINE)
    }
    found = {topic.__module__ for topic in all_topics()}
    assert len(having) > 15
    assert having - found == NOT_ASKED
