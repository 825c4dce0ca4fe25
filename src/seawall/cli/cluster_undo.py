# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster undo NAME | --all``: what was changed is put back, whoever is left to do it."""

from typing import TYPE_CHECKING

from seawall.cli.cluster_act import ClusterActVerb

if TYPE_CHECKING:
    from seawall.cluster.acts.act_desk import ActDesk
    from seawall.cluster.pages.cluster_act_page import ActStep, ClusterActPage
    from seawall.views.terminal import Console


class ClusterUndoVerb(ClusterActVerb):
    """Needs neither chart nor controller nor our kinds of objects.  Of all there may be thousands:
    each is printed when it is done.
    """

    def act(self, desk: "ActDesk") -> "ClusterActPage":
        from seawall.cluster.acts.release_act import undo  # noqa: PLC0415 - an extra

        if self._is_followed:
            desk.follow = self._print_step
        return undo(desk, self.arguments.subject, self.arguments.reason)

    def fitted(self, page: "ClusterActPage", paper: "Console") -> "ClusterActPage":
        from seawall.cluster.pages.cluster_act_text import unfollowed  # noqa: PLC0415 - of text

        return unfollowed(page) if self._is_followed else super().fitted(page, paper)

    @property
    def _is_followed(self) -> bool:
        return self.arguments.all and not self.arguments.json

    def _print_step(self, step: "ActStep") -> None:
        from seawall.cli.console import console_for  # noqa: PLC0415 - of text
        from seawall.cluster.pages.cluster_act_text import followed_lines  # noqa: PLC0415

        paper = console_for(getattr(self.arguments, "color", "auto"))
        for line in followed_lines(step, paper):
            print(line, flush=True)


run = ClusterUndoVerb.run
