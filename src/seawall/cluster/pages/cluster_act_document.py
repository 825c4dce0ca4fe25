# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster quarantine|release|undo|approve|brake|rescue --json``."""

from typing import Final

from seawall.cluster.pages.cluster_act_page import BrakeAnswer, ClusterActPage
from seawall.views.documents.document_fields import Document, shown

ACT: Final = Document(
    name="cluster-act",
    verb="seawall cluster quarantine|release|undo|approve|brake|rescue --json",
    about="What a person did to a cluster, or in a dry run would do: each write, and its way back.",
    is_of_host=False,
    pages=(ClusterActPage,),
    shapes={
        ClusterActPage: shown(
            "as_of=as_of_unix_seconds:time source act subject:filled headline is_dry_run outcome "
            "steps effects lost commands is_taken_back guards could_not_see=unseen"
        ),
        BrakeAnswer: shown("node state mode:filled words:filled said_at=said_at_unix_seconds:time"),
    },
)  # fmt: skip
