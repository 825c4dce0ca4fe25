"""Which logs of plugins are read where there are too many: nobody is pushed out unseen."""

from pathlib import Path

import pytest
from tests.device_log_tree import AT, BAD, GOOD, PLUGIN_POD, checkpoint, plain_tree, put

from seawall.accounts.devices.node_faults import health
from seawall.accounts.devices.node_faults.faults import DeviceFaults, faults_of
from seawall.host.device_log import tails
from seawall.host.device_log.tails import FILES_MOST, PODS, PluginLogs, plugin_logs
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings import device_log, kubelet_devices
from seawall.readings.device_log import DeviceLog

LINE = f"2024-08-09T13:01:15.6Z stderr F 'nvidia.com/gpu' device marked unhealthy: {BAD}\n"
PLUGINS = f"{PODS}/{PLUGIN_POD}/nvidia-device-plugin/0.log"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node with one real plugin."""
    plain_tree(tmp_path)
    checkpoint(tmp_path, {"nvidia.com/gpu": [GOOD]})
    put(tmp_path, PLUGINS, LINE)
    return tmp_path


def tenants(root: Path, pods: int, at: float, files: int = 4) -> None:
    """Anybody may call a pod so, in a namespace of any name, and some sort before any plugin's."""
    for pod in range(pods):
        name = f"a-kube-system_a-device-plugin-{pod}_{pod:08d}-1111-4222-8333-444444444444"
        for file in range(files):
            put(root, f"{PODS}/{name}/c/{file}.log", LINE.replace(BAD, "GPU-none"), at)


def chosen(root: Path) -> PluginLogs:
    return plugin_logs(LiveHost(str(root))._open)


def test_pods_take_turns(root: Path) -> None:
    tenants(root, 5, AT + 9)
    paths, left_out = chosen(root)
    assert PLUGINS in paths
    assert len(paths) == FILES_MOST
    assert left_out == "5 of 21 logs were left out"
    numbers = [path[-5] for path in paths if "a-device-plugin-0" in path]
    assert numbers == sorted(numbers), "the eldest first"
    assert numbers[-1] == "3"


def test_containers_of_a_pod_take_turns_too(root: Path) -> None:
    for name in ("config-manager", "x"):
        for file in range(9):
            put(root, f"{PODS}/{PLUGIN_POD}/{name}/{file}.log", b"", AT + file)
    tenants(root, 4, AT + 9, 5)
    assert PLUGINS in chosen(root).paths


def test_who_wrote_last_comes_first(root: Path) -> None:
    tenants(root, 20, AT - 3600)
    paths, left_out = chosen(root)
    assert PLUGINS in paths
    assert left_out


def _seen(root: Path) -> tuple[DeviceLog, tuple[Unread, ...]]:
    host = LiveHost(str(root))
    try:
        log, known = device_log.read(host), kubelet_devices.read(host)
    finally:
        host.close()
    assert isinstance(log, DeviceLog)
    assert not isinstance(known, Unread)
    found = DeviceFaults(shortfall=health.shortfall(log, known))
    return log, faults_of(log, known, found).devices_unseen


def test_what_was_left_out_is_told_and_nothing_is_called_healthy(root: Path) -> None:
    log, unseen = _seen(root)
    assert not unseen
    assert [one.device for one in log.events] == [BAD]
    tenants(root, 20, AT + 3600, 1)
    log, unseen = _seen(root)
    assert BAD not in [one.device for one in log.events]
    assert [(one.path, one.why, one.detail) for one in unseen] == [
        (PODS, "too_big", "5 of 21 logs were left out")
    ]


def test_folders_that_were_not_looked_at_are_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "FOLDERS_MOST", 1)
    assert not chosen(root).left_out
    tenants(root, 1, AT, 1)
    assert chosen(root).left_out == "pods after the first 1 were left out"
