# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu query --json``."""

from typing import Final, Literal

from seawall.accounts.devices.layers import Diagnosis
from seawall.readings.gpu_query import GpuQuery, Library
from seawall.views.documents.document_fields import Document, columns, known, shown, unread
from seawall.views.gpu_query_page import AskedAs, DeviceMemory, JoinedDevice, QueryPage
from seawall.views.gpu_query_words import ExplainedFailure, cuda_words


def libraries_of(page: QueryPage) -> Literal["here", "host"]:
    """Whose libraries were asked: of where this runs, or, of a workload, still the host's."""
    return "host" if page.asked_as else "here"


QUERY: Final = Document(
    name="gpu-query",
    verb="seawall gpu query --json",
    about="Devices as NVML and the CUDA driver API tell of them. Additive within a major number: "
    "there may be more figures.",
    pages=(QueryPage,),
    shapes={
        QueryPage: (
            *shown("problem devices failed=explained libraries=answer.libraries:values"),
            *shown("versions=answer environment=answer.environment nodes=refused"),
            *shown("could_not_see=not_seen workload=asked_as.workload.name"),
            *shown(libraries_of, "asked_as diagnosis container_libraries"),
            *shown("container_library_differs=own_words:filled left_behind"),
        ),
        GpuQuery: (
            *unread("driver=driver_version module=module_version"),
            *unread("cuda_driver=cuda_version cuda_runtime=runtime_version", turn=cuda_words),
        ),
        JoinedDevice: (
            *shown("index=nvml.index cuda_index=cuda.index name uuid bus_id=nvml.bus_id memory"),
            *shown("figures=other_figures failed"),
        ),
        DeviceMemory: known("total free used"),
        ExplainedFailure: shown("call code name usually proof:filled"),
        Library: (*shown("name path"), *shown("tried", turn=columns("place why"))),
        AskedAs: shown("pid uid=inside.uid"),
        Diagnosis: shown("mode headline remedy"),
    },
)
