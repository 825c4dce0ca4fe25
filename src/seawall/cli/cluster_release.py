# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster release NAME|WORKLOAD``: a quarantine ends."""

from typing import TYPE_CHECKING

from seawall.cli.cluster_act import ClusterActVerb

if TYPE_CHECKING:
    from seawall.cluster.acts.act_desk import ActDesk
    from seawall.cluster.pages.cluster_act_page import ClusterActPage


class ClusterReleaseVerb(ClusterActVerb):
    """Ends one and puts back what was changed in its name."""

    def act(self, desk: "ActDesk") -> "ClusterActPage":
        from seawall.cluster.acts.release_act import release  # noqa: PLC0415 - an extra

        return release(desk, self.arguments.subject, self.arguments.reason)


run = ClusterReleaseVerb.run
