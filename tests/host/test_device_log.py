"""The probe ``device_log``: what is kept of published logs, and that nothing else is."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.device_log_tree import (
    AT,
    BAD,
    FILES,
    GOOD,
    PLUGIN_POD,
    RECORDED,
    gpu,
    log,
    plain_tree,
    put,
    whole_node,
)  # fmt: skip

from seawall.host.device_log import device_log_probe
from seawall.host.device_log.device_log_events import (
    HINT,
    DeviceLogEvent,
    of_kernel,
    of_kubelet,
    of_plugin,
)
from seawall.host.device_log.device_log_probe import chosen, device_log, thinned
from seawall.host.device_log.log_line_head import container_line, service_line
from seawall.host.device_log.tails import TAIL_BYTES, hinted_lines, plugin_logs
from seawall.host.live import LiveHost
from seawall.host.slow_probes import SLOW_PROBES

SECRET = "hunter2-token"
READERS = (of_kubelet, of_plugin, of_kernel)
DENIED = (
    '"Pod admission denied" podUID="da0fd88f-a3d8-4c69-88de-f6f0b91c6c6f" pod="default/gpu-pod"'
    ' reason="UnexpectedAdmissionError" message="Allocate failed due to '
)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clocks of logs without a zone are local ones."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def asked(root: Path) -> dict[str, Any]:
    host = LiveHost(str(root))
    try:
        answer = host.ask("device_log")
    finally:
        host.close()
    assert isinstance(answer, dict), answer
    return answer


def told(root: Path) -> list[DeviceLogEvent]:
    return [DeviceLogEvent(*row) for row in asked(root)["events"]]


# --- published lines ---------------------------------------------------------------------


def test_a_whole_node(tmp_path: Path) -> None:
    answer = asked(whole_node(tmp_path))
    events = [DeviceLogEvent(*row) for row in answer["events"]]
    assert [(one.pod, one.why) for one in events if one.what == "refused"] == [
        ("gpu-pod", "no_healthy"), ("batch-1", "unregistered"), ("deleted", "no_healthy"),
    ]  # fmt: skip
    assert [one.pod for one in events if one.what == "gone"] == ["deleted"]
    assert [(one.device, one.at) for one in events if one.what == "marked"] == [
        (BAD, pytest.approx(AT - 1628.1, abs=0.1))
    ], "repeated marks are one"
    assert [(one.device, one.xid) for one in events if one.what == "kernel_xid"] == [
        ("0000:00:07", 31), ("0000:00:08", 94), ("0000:44:00", 79),
    ]  # fmt: skip
    assert answer["gpus"] == [["0000:00:07.0", BAD], ["0000:00:08.0", GOOD]]
    assert {row[0] for row in answer["logs"]} == {"kubelet", "kernel", "plugin"}
    assert all(row[4] is None for row in answer["logs"])


def test_lines_of_before_1_26_and_of_the_plugin_of_before_0_14(tmp_path: Path) -> None:
    plain_tree(tmp_path)
    log(tmp_path, "/var/log/kubelet.log", "kubelet_old.log")
    log(tmp_path, f"/var/log/pods/{PLUGIN_POD}/ctr/0.log", "plugin_0_7.log")
    events = told(tmp_path)
    assert [(one.what, one.pod, one.uid[:8], one.resource, one.why) for one in events] == [
        ("started", "", "", "", ""),
        ("refused", "old-pod", "", "nvidia.com/gpu", "too_few"),
        ("refused", "older-pod", "5ea0a11d", "amd.com/gpu", "no_healthy"),
        ("registered", "", "", "amd.com/gpu", ""),
    ]  # the plugin's own file is of 2020 and has no clock but that of its text: not the CRI's form


@pytest.mark.parametrize(
    ("text", "event"),
    [
        # 1.0.0-beta5 to 0.12
        (f"XidCriticalError: Xid=69 on Device={BAD}, the device will go unhealthy.",
         DeviceLogEvent("xid", 1.0, device=BAD, xid=69)),
        ("XidCriticalError: Xid=79, All devices will go unhealthy.",
         DeviceLogEvent("xid", 1.0, xid=79)),
        # 0.13 and later
        (f"XidCriticalError: Xid=94 on Device={BAD}; marking device as unhealthy.",
         DeviceLogEvent("xid", 1.0, device=BAD, xid=94)),
        ("Error waiting for event: GPU is lost; Marking all devices as unhealthy",
         DeviceLogEvent("lost", 1.0)),
        ("Error waiting for event: Unknown Error; marking all devices as unhealthy",
         DeviceLogEvent("lost", 1.0)),
        (("Failed to determine uuid for event {Device:{Handle:0x7f}}: ERROR; Marking all devices as"
         " unhealthy."), DeviceLogEvent("lost", 1.0)),
        # all
        (f"'nvidia.com/gpu' device marked unhealthy: {BAD}::3",
         DeviceLogEvent("marked", 1.0, resource="nvidia.com/gpu", device=f"{BAD}::3")),
        ("'nvidia.com/mig-1g.5gb' device marked unhealthy: MIG-GPU-a/1/0",
         DeviceLogEvent("marked", 1.0, resource="nvidia.com/mig-1g.5gb", device="MIG-GPU-a/1/0")),
        ("Registered device plugin for 'nvidia.com/gpu.shared' with Kubelet",
         DeviceLogEvent("registered", 1.0, resource="nvidia.com/gpu.shared")),
    ],
)  # fmt: skip
def test_the_plugins_texts_by_version(text: str, event: DeviceLogEvent) -> None:
    assert HINT.search(text.encode())
    assert list(of_plugin(text.encode(), 1.0)) == [event]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (("no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is"
         " unexpected"), "no_healthy"),
        ("cannot allocate unregistered device nvidia.com/gpu, which is unexpected",
         "unregistered"),
        (("previously allocated devices are no longer healthy; cannot allocate unhealthy devices"
         " nvidia.com/gpu, which is unexpected"), "not_healthy_any_more"),
        (("requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0,"
         " which is unexpected"), "too_few"),
        ("rpc error: code = Unavailable desc = transport is closing, which is unexpected", None),
        (("device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc"
         " = Unable to retrieve list of available devices: error creating nvml.Device 5: nvml: GPU"
         " is lost, which is unexpected"), None),
    ],
)  # fmt: skip
def test_the_kubelets_reasons(message: str, why: str | None) -> None:
    found = list(of_kubelet(f'{DENIED}{message}" operation="add"'.encode(), 1.0))
    expected = ("default", "gpu-pod", "nvidia.com/gpu", why)
    assert [(one.namespace, one.pod, one.resource, one.why) for one in found] == (
        [expected] if why else []
    )


def test_a_pod_that_was_refused_for_cpu_is_not_meant() -> None:
    line = next(
        line for line in (FILES / "kubelet_syslog.log").read_bytes().splitlines()
        if b"kube-scheduler-master01" in line and b"denied" in line
    )  # fmt: skip
    assert not list(of_kubelet(service_line(line, AT).text, 1.0))


# --- hostile ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        # What a container printed, as the kubelet quotes it (%q) in a line of its own.
        'prober.go:107] "Probe failed" output="' + DENIED.replace('"', '\\"'),
        'I0809 13:01:03.5 1 x.go:1] "Probe failed" output="\\n' + DENIED.replace('"', '\\"'),
        DENIED.replace("gpu-pod", "../../etc") + "no healthy devices",
        DENIED.replace("gpu-pod", 'x" uid="') + "no healthy devices present; cannot",
        f"x 'nvidia.com/gpu' device marked unhealthy: {BAD}",
        f"'nvidia.com/gpu' device marked unhealthy: {BAD} {SECRET}",
        "'nvidia.com/gpu' device marked unhealthy: \x1b[31mGPU",
        "NVRM: Xid (PCI:0000:00:08; rm -rf): 94, pid",
        "app says NVRM: Xid (PCI:0000:00:08): 79, GPU has fallen off the bus",
    ],
)
def test_what_only_looks_like_it(text: str) -> None:
    assert not [event for read in READERS for event in read(text.encode(), 1.0)]


def test_nothing_else_leaves_the_probe(tmp_path: Path) -> None:
    """Not even of the lines that count."""
    whole_node(tmp_path)
    noise = f"Aug  9 13:01:02 node4 app[1]: password={SECRET} marked unhealthy NVRM: Xid (\n"
    syslog = tmp_path / "var/log/syslog"
    put(tmp_path, "/var/log/syslog", noise + syslog.read_text().replace(
        "which is unexpected", f"which is {SECRET}"))  # fmt: skip
    plugin = tmp_path / f"var/log/pods/{PLUGIN_POD}/nvidia-device-plugin/0.log"
    put(tmp_path, f"/{plugin.relative_to(tmp_path)}", plugin.read_text() + SECRET)
    other = f"2024-08-09T13:01:15.6Z stderr F 'nvidia.com/gpu' device marked unhealthy: {GOOD}\n"
    put(tmp_path, "/var/log/pods/shop_web_11111111-1111-4111-8111-111111111111/app/0.log", other)
    answer = json.dumps(asked(tmp_path))
    assert SECRET not in answer
    assert "da0fd88f" in answer, "the refusal itself is there"
    assert [one.device for one in told(tmp_path) if one.what == "marked"] == [BAD], "not the app's"


@given(st.binary(max_size=300), st.sampled_from(RECORDED), st.integers(0, 4000))
def test_any_bytes(noise: bytes, name: str, cut: int) -> None:
    """Recorded logs with noise in them: only rows that JSON has, and of the right shape."""
    data = (FILES / name).read_bytes()
    data = data[:cut] + noise + data[cut:]
    for line in hinted_lines(data, time.monotonic() + 9):
        for told_line in (service_line(line, AT), container_line(line, AT)):
            events = [one for read in READERS for one in read(told_line.text, told_line.at or 0.0)]
            json.dumps(events).encode("ascii")
            assert all(len(word) < 400 for one in events for word in one if isinstance(word, str))


def test_absurd_files(tmp_path: Path) -> None:
    """A FIFO, a folder, a line of 20 MiB, a sparse GiB, a name with an escape."""
    whole_node(tmp_path)
    folder = tmp_path / f"var/log/pods/{PLUGIN_POD}/nvidia-device-plugin"
    os.mkfifo(folder / "1.log")
    (folder / "2.log").mkdir()
    (folder / "0.log.20240809-120000.gz").write_bytes(b"\x1f\x8b")
    (folder.parent / "\x1b[2Jx").mkdir()
    put(tmp_path, "/var/log/messages", b"XidCriticalError: " * (20 << 16))
    with open(tmp_path / "var/log/daemon.log", "wb") as file:
        file.truncate(1 << 30)
    began = time.monotonic()
    answer = asked(tmp_path)
    assert time.monotonic() - began < SLOW_PROBES["device_log"].deadline_seconds
    assert [row for row in answer["events"] if row[0] == "marked"]
    problems = {row[1].rpartition("/")[2]: row[4][0] for row in answer["logs"] if row[4]}
    assert problems == {"1.log": "failed", "2.log": "failed"}


def test_a_link_does_not_leave_the_tree(tmp_path: Path) -> None:
    outside = tmp_path / "outside.log"
    outside.write_bytes((FILES / "kubelet_syslog.log").read_bytes())
    root = plain_tree(tmp_path / "root")
    (root / "var/log").mkdir(parents=True)
    (root / "var/log/syslog").symlink_to(outside)
    assert not asked(root)["events"]


# --- ends of logs, clocks, bounds -------------------------------------------------------------


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    plain_tree(tmp_path)
    recorded = (FILES / "kubelet_syslog.log").read_bytes()
    noise = b"Aug  9 13:02:01 node4 kubelet[1]: nothing of interest to anybody, again\n"
    put(tmp_path, "/var/log/syslog", recorded + noise * (TAIL_BYTES // len(noise) + 1))
    answer = asked(tmp_path)
    assert not answer["events"]
    [row] = [row for row in answer["logs"] if row[0] == "kubelet"]
    assert row[3] == pytest.approx(AT - 3479, abs=1), "and it says from when on"


def test_many_refusals_are_bounded_and_the_newest_are_kept() -> None:
    events = [
        DeviceLogEvent("refused", float(n), "ns", f"pod-{n}", resource="x/y") for n in range(5000)
    ]
    assert thinned(events * 2) == events
    same = [DeviceLogEvent("refused", float(n), "ns", "pod", resource="x/y") for n in range(5000)]
    assert thinned(same) == same[:1]
    both = [
        DeviceLogEvent("gone", 1.0, "ns", "pod"),
        DeviceLogEvent("gone", 2.0, "ns", "never-refused"),
        same[0],
    ]
    assert chosen(both) == [same[0], both[0]]


def test_a_noisy_log_does_not_push_the_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_node(tmp_path)
    line = (FILES / "kubelet_syslog.log").read_bytes().splitlines(keepends=True)[-1]
    put(tmp_path, "/var/log/syslog", line * 3000)
    monkeypatch.setattr(device_log_probe, "_KEPT_MOST", 100)
    answer: Any = device_log("", LiveHost(str(tmp_path))._open)
    assert [row for row in answer["events"] if row[0] == "marked"]


@pytest.mark.parametrize(
    ("line", "at"),
    [
        (b"1718012345.250000 node kubelet[9]: I0610 x", 1718012345.25),
        (b"Aug  9 13:00:00 node kubelet[9]: text", AT - 3600),
        (b"Dec 31 23:00:00 node kubelet[9]: text", AT - 3600 * 5319),  # the year before
        (b"2024-08-09T13:00:00.5+02:00 node kubelet[9]: text", AT - 3 * 3600 + 0.5),
        ((b"2026-04-19T03:00:55.442 controller-0 kubelet[3788611]: info I0419 03:00:55.440611 "
         b'3788611 config.go:398] "Receiving"'), 1776567655.442),
        (b"I0809 13:00:00.440611 3788611 config.go:398] text", AT - 3600),
        (b"Feb 29 13:00:00 node kubelet[9]: text", AT - 162 * 86400 - 3600),
        (b"Feb 31 13:00:00 node kubelet[9]: text", None),
        (b"I9999 99:99:99.0 1 a.go:1] text", None),
        (b"99999999999.0 node kubelet[9]: text", 99999999999.0),
        (b"text", None),
    ],
)  # fmt: skip
def test_clocks(line: bytes, at: float | None) -> None:
    found = service_line(line, AT)
    assert found.at == (None if at is None else pytest.approx(at, abs=1))


def test_dockers_logs_and_rotation(tmp_path: Path) -> None:
    """Docker's files are JSON, and /var/log/pods links to them."""
    plain_tree(tmp_path)
    text = f"'nvidia.com/gpu' device marked unhealthy: {BAD}\n"
    row = {
        "log": f"2024/08/09 13:00:00 {text}",
        "stream": "stderr",
        "time": "2024-08-09T13:00:00.123456789Z",
    }
    put(tmp_path, "/var/lib/docker/containers/abc/abc-json.log", json.dumps(row) + "\n")
    folder = tmp_path / f"var/log/pods/{PLUGIN_POD}/ctr"
    folder.mkdir(parents=True)
    (folder / "1.log").symlink_to("/var/lib/docker/containers/abc/abc-json.log")
    for name in ("0.log", "1.log.20240809-120000", "1.log.20240809-110000.gz", "x.log", "9.txt"):
        (folder / name).write_bytes(b"")
    [event] = told(tmp_path)
    assert (event.what, event.device, event.at) == (
        "marked",
        BAD,
        pytest.approx(AT - 3599.9, abs=0.1),
    )
    paths, left_out = plugin_logs(LiveHost(str(tmp_path))._open)
    names = [path.rpartition("/")[2] for path in paths]
    assert not left_out
    assert names == ["0.log", "1.log.20240809-120000", "1.log"], "the eldest first"


def test_a_gpu_that_nobody_used_has_no_uuid(tmp_path: Path) -> None:
    plain_tree(tmp_path)
    gpu(tmp_path, "0000:3b:00.0", "GPU-????????-????-????-????-????????????")
    gpu(tmp_path, "not-an-address", GOOD)
    assert asked(tmp_path)["gpus"] == [["0000:3b:00.0", ""]]


# --- the journal ------------------------------------------------------------------------------


def journalctl(folder: Path, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "journalctl").write_text(f"#!/bin/sh\n{body}")
    (folder / "journalctl").chmod(0o755)


def test_the_journal_is_read_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a program in PATH, as a person's would be; without our environment."""
    newest_first = [
        f"{1723208460 + n}.000000 node kubelet[9]: {text}" for n, text in (
            (15, ('I0809 13:01:15.5 9 server.go:161] "Got registration request from device plugin'
                 ' with resource" resourceName="nvidia.com/gpu"')),
            (3, (f"I0809 13:01:03.5 9 kubelet.go:2357] {DENIED}no healthy devices present; cannot"
                ' allocate unhealthy devices nvidia.com/gpu, which is unexpected"')),
            (0, 'I0809 13:01:00.1 9 kubelet.go:2345] "Starting kubelet main sync loop"'),
        )
    ]  # fmt: skip
    (tmp_path / "lines").write_text("\n".join(newest_first) + "\n")
    journalctl(tmp_path / "bin", f'[ -z "$SECRET" ] || exit 9\ncat {tmp_path}/lines\n')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("SECRET", SECRET)
    answer: Any = device_log("")
    assert [row[0] for row in answer["events"] if row[0] != "kernel_xid"] == [
        "started", "refused", "registered",
    ]  # fmt: skip
    [row] = [row for row in answer["logs"] if row[0] == "kubelet"]
    assert row == ["kubelet", "journal", 3, 1723208460.0, None], "back to its oldest line"


def test_a_journal_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "1723208460.000000 node kubelet[9]: nothing"
    journalctl(tmp_path / "bin", f"while :; do echo '{text}'; done\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(device_log_probe, "_JOURNAL_SECONDS", 0.3)
    answer: Any = device_log("")
    [row] = [row for row in answer["logs"] if row[0] == "kubelet"]
    assert row[3] == 1723208460.0
    assert row[4][0] == "not_reached"
