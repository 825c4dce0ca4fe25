# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster undo NAME | --all``: what was changed is put back, whoever is left to do it."""

from typing import TYPE_CHECKING

from seawall.cli.cluster_act import ClusterActVerb

if TYPE_CHECKING:
    from seawall.cluster.acts.act_desk import ActDesk
    from seawall.cluster.pages.cluster_act_page import ClusterActPage


class ClusterUndoVerb(ClusterActVerb):
    """Needs neither chart nor controller nor our kinds of objects."""

    def act(self, desk: "ActDesk") -> "ClusterActPage":
        from seawall.cluster.acts.release_act import undo  # noqa: PLC0415 - an extra

        return undo(desk, self.arguments.subject, self.arguments.reason)


run = ClusterUndoVerb.run
