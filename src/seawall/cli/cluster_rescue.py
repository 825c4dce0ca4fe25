# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster rescue NODE``: an order to a node that is silent for want of memory."""

from typing import TYPE_CHECKING

from seawall.cli.cluster_act import ClusterActVerb

if TYPE_CHECKING:
    from seawall.cluster.acts.act_desk import ActDesk
    from seawall.cluster.pages.cluster_act_page import ClusterActPage


class ClusterRescueVerb(ClusterActVerb):
    """Makes the order and waits for what comes of it."""

    def act(self, desk: "ActDesk") -> "ClusterActPage":
        from seawall.cluster.acts.rescue_act import RescueWish, rescue  # noqa: PLC0415 - an extra

        asked = self.arguments
        return rescue(desk, RescueWish(asked.node, tuple(asked.pods), asked.reason, asked.wait))


run = ClusterRescueVerb.run
