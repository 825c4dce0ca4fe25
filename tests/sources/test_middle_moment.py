# SPDX-License-Identifier: Apache-2.0
"""Between the two moments of a window a third one, on this machine."""

import argparse

from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.scene import Middle, TopicWindow
from seawall.cli.source_options import open_source
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.zoneinfo import Zoneinfo

HERE = argparse.Namespace(bundle=None, root=None, at=None, timeout=20.0)


def test_this_machine_is_read_between_the_two() -> None:
    source = open_source(HERE)
    for topic in (Ledger, Kernel):
        source.first.get(topic)
    source.mark_first_moment()
    scene = source.later_scene()
    window, middle = scene.get(TopicWindow[Ledger]), scene.get(Middle[Ledger])
    assert isinstance(window, TopicWindow)
    assert isinstance(middle, Middle)
    assert 0.4 * window.seconds < middle.seconds < 0.8 * window.seconds
    assert middle.value.total_bytes == window.later.total_bytes
    assert scene.middle is not None
    assert scene.middle.get(Meminfo) is not source.first.get(Meminfo)
    assert scene.middle.get(Zoneinfo) is source.first.get(Zoneinfo)  # not read once more


def test_one_moment_has_no_middle() -> None:
    assert isinstance(open_source(HERE).scene().get(Middle[Ledger]), Unread)
