# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster approve NAME``: what is proposed may be done."""

from typing import TYPE_CHECKING

from seawall.cli.cluster_act import ClusterActVerb, mode_of

if TYPE_CHECKING:
    from seawall.cluster.acts.act_desk import ActDesk
    from seawall.cluster.pages.cluster_act_page import ClusterActPage


class ClusterApproveVerb(ClusterActVerb):
    """Makes a quarantine active, and says who approved it."""

    def act(self, desk: "ActDesk") -> "ClusterActPage":
        from seawall.cluster.acts.quarantine_act import approve  # noqa: PLC0415 - an extra

        asked = self.arguments
        return approve(desk, asked.subject, mode_of(asked), is_agreed=asked.yes)


run = ClusterApproveVerb.run
