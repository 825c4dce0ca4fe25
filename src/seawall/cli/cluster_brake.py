# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster brake [--off]``: everything is disarmed."""

from typing import TYPE_CHECKING

from seawall.cli.cluster_act import ClusterActVerb

if TYPE_CHECKING:
    from seawall.cluster.acts.act_desk import ActDesk
    from seawall.cluster.pages.cluster_act_page import ClusterActPage


class ClusterBrakeVerb(ClusterActVerb):
    """Sets the policy's brake and waits for the guards' answers."""

    def act(self, desk: "ActDesk") -> "ClusterActPage":
        from seawall.cluster.acts.brake_act import BrakeWish, brake  # noqa: PLC0415 - an extra

        asked = self.arguments
        return brake(desk, BrakeWish(asked.off, asked.reason, asked.wait))


run = ClusterBrakeVerb.run
