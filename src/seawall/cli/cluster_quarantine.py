# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster quarantine WORKLOAD``: a person's own word against a workload."""

from typing import TYPE_CHECKING

from seawall.cli.cluster_act import ClusterActVerb, mode_of

if TYPE_CHECKING:
    from seawall.cluster.acts.act_desk import ActDesk
    from seawall.cluster.pages.cluster_act_page import ClusterActPage


class ClusterQuarantineVerb(ClusterActVerb):
    """Writes an active quarantine."""

    def act(self, desk: "ActDesk") -> "ClusterActPage":
        from seawall.cluster.acts.quarantine_act import (  # noqa: PLC0415 - an extra
            QuarantineWish,
            quarantine,
        )

        asked = self.arguments
        wish = QuarantineWish(mode_of(asked), asked.life, asked.reason, is_agreed=asked.yes)
        return quarantine(desk, asked.workload, wish)


run = ClusterQuarantineVerb.run
