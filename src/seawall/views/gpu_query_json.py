# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu query --json``: the document ``seawall.gpu-query/1``."""

from typing import Any

from seawall.host.host import Unread
from seawall.readings.gpu_query import Library
from seawall.readings.gpu_query_inside import Inside
from seawall.views.document import not_seen_rows, with_unread
from seawall.views.gpu_query_page import Joined, QueryPage
from seawall.views.gpu_query_words import ExplainedFailure, cuda_words


def document(head: dict[str, Any], page: QueryPage) -> dict[str, Any]:
    """The whole answer; without one ``problem`` says why."""
    query = page.query
    rows = not_seen_rows(page.not_seen())
    if isinstance(query, Unread):
        return {
            **head, "problem": query.detail or query.why, "devices": [], "failed": [],
            "libraries": [], "versions": with_unread({}), "environment": {}, "nodes": [],
            "could_not_see": rows, **_inside(page),
        }  # fmt: skip
    versions = {
        "driver": query.driver_version,
        "module": query.module_version,
        "cuda_driver": query.cuda_version and cuda_words(query.cuda_version),
        "cuda_runtime": query.runtime_version and cuda_words(query.runtime_version),
    }
    return {
        **head,
        "problem": None,
        "devices": [_device(one, page) for one in page.devices()],
        "failed": [_explained(one) for one in page.explained()],
        "libraries": [_library(one) for one in query.libraries.values()],
        "versions": with_unread(versions),
        "environment": dict(query.environment),
        "nodes": list(page.refused),
        "could_not_see": rows,
        **_inside(page),
    }


def _inside(page: QueryPage) -> dict[str, Any]:
    """As whom it was asked; ``libraries_of`` is the host in any case."""
    asked = page.asked_as
    inside = asked.inside if asked else None
    return {
        "workload": asked and asked.workload.name,
        "libraries_of": "host" if asked else "here",
        "asked_as": asked and {"pid": asked.pid, "uid": inside and inside.uid},
        "diagnosis": page.diagnosis
        and {
            "mode": page.diagnosis.mode,
            "headline": page.diagnosis.headline,
            "remedy": page.diagnosis.remedy,
        },
        "container_libraries": [] if inside is None else _own(inside),
        "container_library_differs": page.own_words() or None,
        "left_behind": list(inside.left_behind) if inside else [],
    }


def _own(inside: Inside) -> list[dict[str, Any]]:
    if isinstance(inside.own, Unread):
        return []
    return [
        {
            "name": key,
            "path": one.path,
            "version": one.version,
            "is_the_hosts": one.number == inside.host_files.get(key),
        }
        for key, own in inside.own.items()
        for one in own
    ]


def _library(library: Library) -> dict[str, Any]:
    return {
        "name": library.name,
        "path": library.path,
        "tried": [{"place": place, "why": why} for place, why in library.tried],
    }


def _explained(one: ExplainedFailure) -> dict[str, Any]:
    return {
        "call": one.call,
        "code": one.code,
        "name": one.name,
        "usually": one.usually,
        "proof": one.proof or None,
    }


def _device(device: Joined, page: QueryPage) -> dict[str, Any]:
    first = device.nvml or device.cuda
    figures = dict(device.cuda.figures if device.cuda else {})
    figures |= dict(device.nvml.figures if device.nvml else {})
    return {
        "index": None if device.nvml is None else device.nvml.index,
        "cuda_index": None if device.cuda is None else device.cuda.index,
        "name": device.name,
        "uuid": first and first.uuid,
        "bus_id": device.nvml and device.nvml.bus_id,
        "memory": {
            name: figures.pop(name) for name in ("total", "free", "used") if name in figures
        },
        "figures": figures,
        "failed": [_explained(one) for one in page.explained_of(device)],
    }
