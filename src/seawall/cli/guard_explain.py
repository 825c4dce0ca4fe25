# SPDX-License-Identifier: Apache-2.0
"""``seawall guard explain``: the settings and this machine, side by side."""

import os
from argparse import Namespace
from collections.abc import Sequence

from seawall.cli.guard_here import here
from seawall.cli.verb import Head, Verb
from seawall.findings.blindness import NotSeen
from seawall.guard.config import PATH, chosen_path, read
from seawall.guard.explain import PolicyExplanation, explanation_of
from seawall.guard.explain_document import could_not_see
from seawall.host.live import LiveHost
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.views.document import head


class GuardExplainVerb(Verb[PolicyExplanation]):
    """What the settings mean here."""

    name = "guard-explain"
    text_view = "seawall.guard.explain_text:lines"
    text_options = ("whole",)
    document_table = "seawall.guard.explain_document:EXPLAIN"

    def __init__(self, arguments: Namespace) -> None:
        super().__init__(arguments)
        self._host = LiveHost("/")
        self._snapshot = Snapshot(self._host)

    def page(self) -> PolicyExplanation:
        """UsageProblem when the file is wrong."""
        path = chosen_path(self.arguments.config)
        settings = read(path)
        found = here(settings, self._snapshot, self._host)
        is_default = path == PATH and not os.path.exists(path)
        return explanation_of(settings, found, path, is_default=is_default)

    def head(self, _page: PolicyExplanation) -> Head:
        return head(self.name, self._snapshot.get(Kernel), None)

    def unseen(self, page: PolicyExplanation) -> Sequence[NotSeen]:
        """Of this machine."""
        return could_not_see(page)


run = GuardExplainVerb.run
