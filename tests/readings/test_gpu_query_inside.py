"""The answer of the probe ``gpu_query_inside``: it may come from whoever took the asker over."""

from typing import Any

from hypothesis import given
from tests.readings.test_gpu_query import ANY, Answering

from seawall.host.host import Unread
from seawall.readings.gpu_query import GpuQuery, Library
from seawall.readings.gpu_query_inside import Inside, ask, own_words, parsed

HOST = Library("libcuda.so.1", "/usr/lib64/libcuda.so.550.54.14", ())
OURS = [8, 4711]


def whole(**more: Any) -> dict[str, Any]:
    files = {"nvml": [8, 1], "cuda": OURS}
    libraries = {
        key: {"name": key, "path": f"/x/{key}", "tried": [], "file": file}
        for key, file in files.items()
    }
    return {
        "uid": 1000, "own": {"nvml": [], "cuda": []}, "libraries": libraries,
        "nvml": {"failed": [], "devices": []}, "cuda": {"failed": [["cuInit", 999]], "devices": []},
        "environment": {}, "runtime_version": None, "left_behind": [], "problem": None, **more,
    }  # fmt: skip


def inside(**more: Any) -> Inside:
    host: Any = Answering(whole(**more))
    found = ask(host, 4711, 5, 1.0)
    assert isinstance(found, Inside)
    return found


def test_an_answer_is_read() -> None:
    found = inside(left_behind=[77])
    assert isinstance(found.query, GpuQuery)
    assert [(one.call, one.code) for one in found.query.failed] == [("cuInit", 999)]
    assert (found.uid, found.left_behind, found.host_files["cuda"]) == (1000, (77,), (8, 4711))
    assert found.query.libraries["runtime"].tried == ()


def test_a_refusal_keeps_its_words_and_who_was_left_behind() -> None:
    found = inside(problem=["no_answer", "it held up"], left_behind=[77], libraries=None)
    assert isinstance(found.query, Unread)
    assert (found.query.why, found.query.detail, found.left_behind) == (
        "no_answer", "it held up", (77,),
    )  # fmt: skip
    host: Any = Answering(Unread("gpu_query_inside", "failed", "the reading child died"))
    assert isinstance(ask(host, 1, 2, 1.0), Unread)
    host = Answering(7)
    malformed = ask(host, 1, 2, 1.0)
    assert isinstance(malformed, Unread)
    assert malformed.why == "malformed"


def cuda(*rows: Any) -> dict[str, Any]:
    return {"nvml": [], "cuda": list(rows)}


def test_how_the_containers_library_stands_to_ours() -> None:
    def words(own: Any) -> str:
        return own_words(inside(own=own), HOST)

    same = ["/usr/lib64/libcuda.so.1", "libcuda.so.550.54.14", OURS]
    copy = ["/usr/lib/libcuda.so.1", "libcuda.so.550.54.14", [9, 9]]
    old = ["/usr/local/cuda/compat/libcuda.so.1", "libcuda.so.535.104.05", [9, 10]]
    odd = ["/usr/lib/libcuda.so.1", None, [9, 11]]
    assert words(cuda(same)) == words(cuda(copy)) == ""
    assert words(cuda(same, old)).startswith(
        "the container has libcuda 535.104.05 of its own (/usr/local/cuda/compat/libcuda.so.1), "
        "the host 550.54.14: the container's was not asked"
    )
    assert words(cuda(odd)).startswith("the container has a libcuda of unknown version of its own")
    assert words(cuda()).startswith("the container has no libcuda.so.1 in the usual folders")
    assert "could not be seen: it held up" in words({"problem": ["no_answer", "it held up"]})
    assert own_words(inside(own=cuda(old)), None) == "", "none was asked"


@given(ANY, ANY, ANY, ANY, ANY)
def test_nothing_escapes(own: Any, libraries: Any, problem: Any, left: Any, answer: Any) -> None:
    host: Any = Answering(None)
    for value in (
        answer,
        whole(own=own, left_behind=left, problem=problem),
        whole(libraries=libraries, uid=left, nvml=answer),
        whole(own={"cuda": own, "nvml": [[own, left, answer]]}),
    ):
        found = parsed(host, value)
        assert found is None or isinstance(own_words(found, HOST), str)
