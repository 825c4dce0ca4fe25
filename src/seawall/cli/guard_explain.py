# SPDX-License-Identifier: Apache-2.0
"""``seawall guard explain``: the settings and this machine, side by side."""

import os
from argparse import Namespace

from seawall.cli.console import console_for
from seawall.cli.guard_here import here
from seawall.cli.verb import print_page
from seawall.guard.config import PATH, chosen_path, read
from seawall.guard.explain import explanation_of
from seawall.guard.explain_document import EXPLAIN, could_not_see
from seawall.guard.explain_text import lines
from seawall.host.live import LiveHost
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.views.document import head, render


def explain(arguments: Namespace) -> int:
    """Print it; UsageProblem when the file is wrong."""
    path = chosen_path(arguments.config)
    settings = read(path)
    host = LiveHost("/")
    snapshot = Snapshot(host)
    is_default = path == PATH and not os.path.exists(path)
    found = explanation_of(settings, here(settings, snapshot, host), path, is_default=is_default)
    top = head("guard-explain", snapshot.get(Kernel), None)
    if arguments.json:
        print(render(EXPLAIN.of(top, found)))
        return 0
    paper = console_for(arguments.color)
    print_page(paper, top, (), lines(found, paper, whole=arguments.whole), could_not_see(found))
    return 0
