# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster suspects``: workloads that are suspected of killing nodes."""

from seawall.cli.cluster_source import ClusterVerb
from seawall.cluster.pages.cluster_tables import ClusterSuspectsPage, cluster_suspects


class ClusterSuspectsVerb(ClusterVerb[ClusterSuspectsPage]):
    """All of them, worst first."""

    name = "cluster-suspects"
    text_view = "seawall.cluster.pages.cluster_tables:suspects_lines"
    text_options = ("whole",)
    document_table = "seawall.cluster.pages.cluster_documents:SUSPECTS"

    def page(self) -> ClusterSuspectsPage:
        return cluster_suspects(self.reading())


run = ClusterSuspectsVerb.run
