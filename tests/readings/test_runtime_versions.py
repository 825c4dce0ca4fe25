"""Versions from what programs print, and from Debian's list of packages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import CaseHost
from tests.readings.device_samples import DPKG as STATUS

from seawall.host.host import JSON, Unread
from seawall.host.recording import Round
from seawall.readings import runtime_versions
from seawall.readings.runtime_versions import (
    DPKG,
    Runtime,
    RuntimeVersions,
    parse,
    runtime_of,
)

DEBIAN = (
    "runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev\ngo: go1.19.8\n"
    "libseccomp: 2.5.4\n"
)


class Answering(CaseHost):
    def __init__(self, answer: JSON | Unread, files: dict[str, Any] | None = None) -> None:
        super().__init__(Round(files=files or {}))
        self.answer = answer

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        return self.answer


def answer(**told: JSON) -> dict[str, JSON]:
    return {
        "runtimes": [["/usr/sbin/runc", DEBIAN]], "told": [], "systemd": "systemd 252 (252.39-1)\n",
        "units_loaded": 1_700_000_000.25, **told,
    }  # fmt: skip


def read(told: JSON | Unread, files: dict[str, Any] | None = None) -> RuntimeVersions:
    found = runtime_versions.read(Answering(told, files))
    assert isinstance(found, RuntimeVersions), found
    return found


def test_debians() -> None:
    found = read(answer(told=["/usr/sbin/runc", "/gone"]))
    assert found == RuntimeVersions(
        runtimes=(Runtime("/usr/sbin/runc", "runc", (1, 1, 5), False, True, "1.1.5+ds1"),),
        bundle_paths=("/usr/sbin/runc",), systemd=252, systemd_text="252.39-1",
        units_loaded=1_700_000_000.25,
    )  # fmt: skip


@pytest.mark.parametrize(("said", "version", "candidate", "distribution"), [
    ("runc version 1.2.5", (1, 2, 5), False, False),
    ("runc version 1.0.0-rc93", (1, 0, 0), True, False),
    ("runc version 1.0.0~rc93+ds1", (1, 0, 0), True, False),
    ("runc version 1.3.0-rc.1", (1, 3, 0), True, False),
    ("runc version 1.1.7-0ubuntu1~22.04.1", (1, 1, 7), False, True),
    ("runc version 1.2.0+dev", (1, 2, 0), False, False),
    ("crun version 1.14", (1, 14, 0), False, False),
    ("NVIDIA Container Runtime version 1.13\n\nrunc version 1.1.3\n", (1, 1, 3), False, False),
])  # fmt: skip
def test_forms(
    said: str, version: tuple[int, int, int], *, candidate: bool, distribution: bool
) -> None:  # fmt: skip
    found = runtime_of("x", said)
    assert found is not None
    assert found[2:5] == (version, candidate, distribution)


def test_one_that_did_not_answer_is_left_out() -> None:
    rows: list[JSON] = [["/a/runc", {"problem": ["no_answer", "late"]}], ["/b/runc", "garbage"]]
    assert read(answer(runtimes=rows)).runtimes == ()
    assert read(answer(systemd={"problem": ["refused", "x"]})).systemd is None
    for absurd in (None, -1, 0, True, float("nan"), 1e300, "x"):
        assert read(answer(units_loaded=absurd)).units_loaded is None


def test_a_tree_of_files_has_debians_list() -> None:
    absent = Unread("runtime_versions", "absent")
    found = read(absent, {DPKG: STATUS})
    assert found.systemd == 252
    (crun,) = found.runtimes
    assert (crun.name, crun.version, crun.is_distribution) == ("crun", (1, 8, 1), True)
    assert runtime_versions.read(Answering(absent)) is absent
    silent = Unread("runtime_versions", "no_answer")
    assert runtime_versions.read(Answering(silent, {DPKG: STATUS})) is silent
    assert parse(STATUS) == {"systemd": "252.39-1~deb12u2", "crun": "1.8.1-1+deb12u1"}


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["runtimes", "told", "systemd", "units_loaded", "problem"]), inner
    ),
    max_leaves=12,
)  # fmt: skip


@given(_JSON)
def test_whatever_a_bundle_holds(told: JSON) -> None:
    found = runtime_versions.read(Answering(told))
    assert isinstance(found, RuntimeVersions) or found.why == "malformed"


@given(st.binary() | st.sampled_from([STATUS, STATUS[:60], b"Package: runc\nVersion: \xff\n"]))
def test_whatever_the_list_holds(data: bytes) -> None:
    assert set(parse(data)) <= {"runc", "crun", "systemd"}
