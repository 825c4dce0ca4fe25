"""``seawall gpu query WORKLOAD`` as text and as JSON: as whom, whose libraries, what ends it."""

from typing import Any

from tests.views.test_gpu_query_views import UVM, query, told

from seawall.accounts.devices.layers import Diagnosis
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.gpu_query import Failed, GpuQuery
from seawall.readings.gpu_query_inside import Inside, OwnLibrary
from seawall.views.gpu_query_page import AskedAs, QueryPage

HOSTILE = "shop/\x1b[2J\n/app"
F1 = Diagnosis("F1", f"{UVM} was never given", "the plugin", "Restart the plugin pod.")
OLD = OwnLibrary("/usr/lib64/libcuda.so.1\x1b[31m", "libcuda.so.535.104.05", (8, 2))


def page(found: GpuQuery | Unread, **more: Any) -> QueryPage:
    values: dict[str, Any] = {
        "query": found, "uid": 1000, "own": {"nvml": (), "cuda": (OLD,)},
        "host_files": {"cuda": (8, 1)}, "left_behind": (), **more,
    }  # fmt: skip
    workload = Workload(kind="container", name=HOSTILE, cgroup="/x")
    asked = AskedAs(workload, 4711, Inside(**values))
    diagnosis = None if isinstance(found, Unread) or not found.failed else F1
    return QueryPage(query=found, refused=(UVM,), unseen=(), asked_as=asked, diagnosis=diagnosis)


def test_the_first_line_names_who_and_whose() -> None:
    words, found = told(page(query()))
    assert words.startswith(
        "As shop/\\x1b[2J\\x0a/app (pid 4711, uid 1000): its cgroup, namespaces and rights, this "
        "host's libraries."
    )
    assert (found["workload"], found["libraries_of"]) == (HOSTILE, "host")
    assert (found["asked_as"], found["diagnosis"]) == ({"pid": 4711, "uid": 1000}, None)


def test_a_library_of_its_own_is_told() -> None:
    words, found = told(page(query()))
    assert "The container has libcuda 535.104.05 of its own" in words
    assert found["container_libraries"] == [
        {"name": "cuda", "path": OLD.path, "version": "535.104.05", "is_the_hosts": False}
    ]
    assert found["container_library_differs"] is not None
    same, none = told(page(query(), own={"cuda": (OLD._replace(number=(8, 1)),)}))
    assert "of its own" not in same
    assert none["container_library_differs"] is None
    unseen, _ = told(page(query(), own=Unread("its files", "no_answer", "it held up")))
    assert "a libcuda of its own could not be seen: it held up" in unseen


def test_what_ends_it_is_told_once_for_all_that_failed() -> None:
    failed = query(failed=(Failed("nvmlInitWithFlags", 999), Failed("cuInit", 999)))
    words, found = told(page(failed))
    assert words.count(f"F1 {UVM} was never given.") == 1
    assert words.count("ends it Restart the plugin pod.") == 1
    assert words.count(f"proof {UVM}.") == 2
    assert "2 calls failed:" in words
    assert found["diagnosis"] == {
        "mode": "F1", "headline": f"{UVM} was never given", "remedy": "Restart the plugin pod.",
    }  # fmt: skip


def test_whoever_was_left_behind_is_named() -> None:
    words, found = told(page(Unread("x", "no_answer", "it held up"), left_behind=(77,)))
    assert "LEFT BEHIND: pid 77 of ours: it was killed, and the kernel does not let go." in words
    assert "The driver did not answer in time" in words
    assert (found["left_behind"], found["problem"]) == ([77], "it held up")
    refused, _ = told(page(Unread("x", "refused", "its cgroup may not be joined: needs root")))
    assert "The driver could not be asked: its cgroup may not be joined: needs root." in refused
