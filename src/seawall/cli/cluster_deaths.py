# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster deaths``: nodes that died, newest first."""

from seawall.cli.cluster_source import ClusterVerb
from seawall.cluster.pages.cluster_tables import ClusterDeathsPage, cluster_deaths


class ClusterDeathsVerb(ClusterVerb[ClusterDeathsPage]):
    """All deaths that the cluster remembers."""

    name = "cluster-deaths"
    text_view = "seawall.cluster.pages.cluster_tables:deaths_lines"
    text_options = ("whole",)
    document_table = "seawall.cluster.pages.cluster_documents:DEATHS"

    def page(self) -> ClusterDeathsPage:
        return cluster_deaths(self.reading())


run = ClusterDeathsVerb.run
