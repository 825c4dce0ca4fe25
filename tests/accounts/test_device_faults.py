"""Refused pods and devices that are not handed out: who is to blame, and what is history."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.device_worlds import entry

from seawall.accounts.devices.node_faults import admission, health
from seawall.accounts.devices.node_faults.faults import DeviceFaults, faults_of, handed_out
from seawall.readings.device_log import DeviceLog, DriverGpu, LogEvent, LogRead, What, Why
from seawall.readings.kubelet_devices import KubeletDevices
from seawall.readings.pod_resources import PodResources

GPU = "nvidia.com/gpu"
A, B = "GPU-aaaa", "GPU-bbbb"
GPUS = (DriverGpu("0000:3b:00.0", A), DriverGpu("0000:5e:00.0", B))
START, REGISTERED = 100.0, 112.0


def event(what: What, at: float, **more: Any) -> LogEvent:
    empty: dict[str, Any] = {
        "namespace": "", "pod": "", "uid": "", "resource": "", "device": "", "xid": None, "why": "",
    }  # fmt: skip
    return LogEvent(what, at, **(empty | more))


def refused(at: float, why: Why = "no_healthy", pod: str = "gpu", uid: str = "u-1") -> LogEvent:
    return event("refused", at, namespace="ml", pod=pod, uid=uid, resource=GPU, why=why)


def registered(at: float = REGISTERED, resource: str = GPU) -> LogEvent:
    return event("registered", at, resource=resource)


def marked(at: float, device: str = A) -> LogEvent:
    return event("marked", at, resource=GPU, device=device)


def log_of(*events: LogEvent, gpus: tuple[DriverGpu, ...] = GPUS) -> DeviceLog:
    logs = (LogRead("kubelet", "journal", 1, 1.0, None), LogRead("plugin", "x", 1, 1.0, None))
    return DeviceLog(tuple(sorted(events, key=lambda one: one.at)), logs, gpus, 0)


def kubelet(*ids: str, uid: str | None = None, resource: str = GPU) -> KubeletDevices:
    entries = () if uid is None else (entry(pod_uid=uid),)
    return KubeletDevices(entries, {resource: ids})


STARTED = event("started", START)


# --- F8 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "mode", "why"),
    [
        ((STARTED, refused(103), registered()), "F8", "had not registered"),
        ((STARTED, refused(103, "unregistered"), registered()), "F8", "had not registered"),
        ((STARTED, refused(103)), "F8", "had not registered"),
        # registered with the kubelet of before: that does not count
        ((registered(50), STARTED, refused(103)), "F8", "had not registered"),
        # the log does not go back to the kubelet's start
        ((refused(103), registered()), "F8", "had not registered"),
        ((refused(103, "unregistered"),), "F8", "had not registered"),
        ((refused(103),), "unnamed", "do not reach back far enough"),
        ((STARTED, registered(101), refused(103)), "F8", "not yet told its devices"),
        # another plugin's registration is no excuse and no blame
        ((STARTED, registered(101, "amd.com/gpu"), refused(203)), "F8", "had not registered"),
        ((STARTED, registered(), refused(203)), "unnamed", "no device of it was healthy"),
        ((STARTED, registered(), marked(150), refused(203)), "F9", "called its devices unhealthy"),
        ((STARTED, refused(103, "not_healthy_any_more")), "F9", "not healthy any more"),
        ((STARTED, registered(), refused(203, "too_few")), "unnamed", "the scheduler counted"),
    ],
)
def test_whose_fault_a_refusal_is(events: tuple[LogEvent, ...], mode: str, why: str) -> None:
    [one] = admission.refused_pods(log_of(*events), kubelet(A, B), ())
    assert one.mode == mode
    assert why in one.why


def test_a_registration_may_be_among_the_events_that_were_cut() -> None:
    whole = log_of(STARTED, refused(103))
    [one] = admission.refused_pods(replace(whole, left_out=3), kubelet(A, B), ())
    assert (one.mode, "may have registered" in one.why) == ("unnamed", True)


def test_what_is_history() -> None:
    """The same pod has devices now; one of its name runs; it was deleted, and not made again."""
    gone = event("gone", 130, namespace="ml", pod="gpu")
    before = (STARTED, refused(103), registered())
    assert not admission.refused_pods(log_of(*before), kubelet(A, B, uid="u-1"), ())
    assert not admission.refused_pods(log_of(*before), kubelet(A, B), {("ml", "gpu")})
    assert not admission.refused_pods(log_of(*before, gone), kubelet(A, B), ())
    again = admission.refused_pods(
        log_of(*before, gone, refused(140, uid="u-2")), kubelet(A, B), {("ml", "other")}
    )
    assert [(one.uid, one.at) for one in again] == [("u-2", 140)]


def test_a_line_without_uid_is_no_alibi_for_another() -> None:
    """Checkpoint entries with an empty uid are nobody's."""
    found = admission.refused_pods(log_of(refused(103, uid="")), kubelet(A, uid=""), ())
    assert [one.name for one in found] == ["ml/gpu"]


def test_many_refusals_are_one_diagnosis_a_cause() -> None:
    events = [refused(103 + n, pod=f"p{n}", uid=f"u{n}") for n in range(5)]
    found = admission.refused_pods(log_of(STARTED, *events, registered()), kubelet(A, B), ())
    [one] = admission.diagnoses(found)
    assert one.mode == "F8"
    assert one.headline.startswith("5 pods were refused by the kubelet for want of nvidia.com/gpu:")
    assert "ml/p0, ml/p1, ml/p2 and 2 more" in one.headline
    assert "It registered at 1970-01-01 00:01:52 UTC" in one.cause
    assert "bare pod" in one.remedy


# --- F9 -------------------------------------------------------------------------------------


def test_an_xid_and_since_when() -> None:
    events = (registered(), event("xid", 500, device=A, xid=79), marked(500.1))
    found = health.shortfall(log_of(*events), kubelet(B))
    [one] = found.unhealthy
    assert (one.device, one.xid, one.since, one.mode) == (A, 79, 500.1, "F9")
    assert found.driver_has == 2
    [diagnosis] = health.diagnoses(found.unhealthy)
    assert "since 1970-01-01 00:08:20 UTC" in diagnosis.headline
    assert "fallen off the bus" in diagnosis.cause
    assert diagnosis.remedy.startswith("See to the device first")


@pytest.mark.parametrize(
    ("events", "ids"),
    [
        ((registered(), marked(500), registered(600)), (A, B)),
        ((registered(), marked(500)), (A, B)),  # a plugin that heals
        ((marked(50), registered()), (A, B)),
        ((registered(),), (A, B)),
        ((registered(), marked(500, "GPU-elsewhere::1")), (A, B, "GPU-elsewhere::1")),
    ],
)
def test_what_is_handed_out_is_not_blamed(
    events: tuple[LogEvent, ...], ids: tuple[str, ...]
) -> None:
    assert not health.shortfall(log_of(*events), kubelet(*ids)).unhealthy


def test_a_mark_of_before_the_restart_does_not_blame_the_plugin_of_now() -> None:
    """It is still not handed out, and nothing tells why: unnamed."""
    events = (registered(), marked(500), registered(600))
    [one] = health.shortfall(log_of(*events), kubelet(B)).unhealthy
    assert (one.device, one.mode, one.since) == (A, "unnamed", None)


def test_all_are_lost_at_once() -> None:
    events = (registered(), event("lost", 499), marked(500, A), marked(500, B))
    found = health.shortfall(log_of(*events), kubelet())
    assert {one.device for one in found.unhealthy} == {A, B}
    assert all("could not ask the driver" in one.why for one in found.unhealthy)
    [diagnosis] = health.diagnoses(found.unhealthy)
    assert diagnosis.headline.startswith("2 devices of nvidia.com/gpu are not handed out")


@pytest.mark.parametrize(
    ("ids", "gpus", "words"),
    [
        (("MIG-1", "MIG-2"), GPUS, "MIG"),
        ((A, "MIG-2"), GPUS, "MIG"),
        (("0", "1"), GPUS, "otherwise"),
        ((A,), (GPUS[0], DriverGpu("0000:5e:00.0", "")), "UUID"),
    ],
)
def test_what_cannot_be_compared(
    ids: tuple[str, ...], gpus: tuple[DriverGpu, ...], words: str
) -> None:
    found = health.shortfall(log_of(registered(), gpus=gpus), kubelet(*ids))
    assert not found.unhealthy
    assert found.driver_has is None
    assert words in found.not_comparable


def test_mixed_mig_by_the_resources_name() -> None:
    found = health.shortfall(log_of(registered()), kubelet("x", resource="nvidia.com/mig-1g.5gb"))
    assert "MIG" in found.not_comparable


def test_another_vendors_node_is_left_alone() -> None:
    found = health.shortfall(log_of(gpus=()), kubelet("0000:0b:00.0", resource="amd.com/gpu"))
    assert (found.unhealthy, found.driver_has, found.not_comparable) == ((), None, "")


def test_what_was_not_seen() -> None:
    """No log of the kubelet was found: pods may have been refused."""
    empty = DeviceLog((), (), GPUS, 0)
    checkpoint = kubelet(A, B)
    found = faults_of(
        empty, checkpoint, DeviceFaults(shortfall=health.shortfall(empty, checkpoint))
    )
    assert [one.detail for one in found.kubelet_unseen] == ["the kubelet's log was not found"]
    assert not found.devices_unseen, "the driver and the checkpoint agree: no log is needed"
    blind = faults_of(
        empty, kubelet("x"), DeviceFaults(shortfall=health.shortfall(empty, kubelet("x")))
    )
    assert len(blind.devices_unseen) == 2


def test_what_the_kubelet_says_now_beats_its_checkpoint() -> None:
    """A resource that it does not name has nothing that is healthy."""
    live = PodResources("/kubelet.sock", {}, {}, {GPU: (B,)})
    assert handed_out(kubelet(A, B), live).registered == {GPU: (B,)}
    none = PodResources("/kubelet.sock", {}, {}, {})
    assert handed_out(kubelet(A, B), none).registered == {GPU: ()}
    silent = PodResources("/kubelet.sock", {}, {}, None)
    assert handed_out(kubelet(A, B), silent).registered == {GPU: (A, B)}
    assert handed_out(kubelet(A, B), None).registered == {GPU: (A, B)}
