# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster why``: which workload kills nodes, on one screen."""

from seawall.cli.cluster_source import ClusterVerb
from seawall.cluster.pages.cluster_why_page import ClusterWhyPage, cluster_why


class ClusterWhyVerb(ClusterVerb[ClusterWhyPage]):
    """The story of the cluster, of a node or of a workload."""

    name = "cluster-why"
    text_view = "seawall.cluster.pages.cluster_why_text:why_lines"
    text_options = ("whole",)
    document_table = "seawall.cluster.pages.cluster_documents:WHY"

    def page(self) -> ClusterWhyPage:
        return cluster_why(self.reading(), self.arguments.subject)


run = ClusterWhyVerb.run
