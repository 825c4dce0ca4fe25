"""What runtimes were told: OCI configs, runc's state, Docker's files; and what the sieve leaves."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import CaseHost
from tests.readings.device_samples import CONFIG_V2, HOSTCONFIG, OCI_CONFIG, RUNC_STATE

from seawall.host import sieve
from seawall.host.host import Unread
from seawall.host.recording import Round
from seawall.problems import ParseProblem
from seawall.readings import container_files, device_specs, docker_devices, oci_devices
from seawall.readings.device_nodes import DeviceNode, DeviceNodes
from seawall.readings.device_rule import DeviceRule
from seawall.readings.device_specs import DeviceSpec, SpecDevice

APP, WEB = "a" * 64, "b" * 64
TASK = "/run/containerd/io.containerd.runtime.v2.task"
DOCKER = f"/var/lib/docker/containers/{WEB}"
CTL = DeviceNode("/dev/nvidiactl", "c", 195, 255, 0o666, 0, 0)
ONE = DeviceNode("/dev/nvidia1", "c", 195, 1, 0o666, 0, 0)
NODES = DeviceNodes({CTL.path: CTL, ONE.path: ONE}, {}, 0)
DENY_ALL = DeviceRule(None, None, None, "rwm", is_allow=False)


def read(
    files: dict[str, bytes | Unread], nodes: DeviceNodes | Unread = NODES
) -> dict[str, DeviceSpec | Unread]:
    host = CaseHost(Round(files=files))
    known = container_files.read(host)
    assert not isinstance(known, Unread)
    found = device_specs.read(host, known, nodes)
    assert isinstance(found, device_specs.DeviceSpecs)
    return dict(found.by_id)


def spec(files: dict[str, bytes | Unread], key: str = APP) -> DeviceSpec:
    found = read(files)[key]
    assert isinstance(found, DeviceSpec), found
    return found


def test_oci_config() -> None:
    found = spec({f"{TASK}/k8s.io/{APP}/config.json": OCI_CONFIG})
    assert found.devices == (SpecDevice("/dev/nvidiactl", "c", 195, 255, 0o666, 0, 0),)
    assert found.rules == (
        DENY_ALL,
        DeviceRule("c", 195, 255, "rw"),
        DeviceRule("c", 226, None, "rw"),
        DeviceRule("b", None, None, "m"),
    )
    assert found.environment == {"NVIDIA_VISIBLE_DEVICES": "all"}
    assert found.cdi_names == ("nvidia.com/gpu=0", "nvidia.com/gpu=1")
    assert found.hooks == ("/usr/bin/nvidia-container-runtime-hook",)
    assert found.device_mounts == ("/dev/kfd",)
    assert found.cgroups_path == "kubepods-burstable-pod1.slice:cri-containerd:abc"
    assert found.source == f"{TASK}/k8s.io/{APP}/config.json"


def test_state_of_a_container_that_only_runc_knows() -> None:
    found = spec({"/run/runc/w1/state.json": RUNC_STATE}, "w1")
    assert [device.path for device in found.devices] == ["/dev/null", "/dev/nvidiactl"]
    assert found.rules == (
        DENY_ALL,
        DeviceRule("c", 195, 255, "rw"),
        DeviceRule("c", 226, None, "rw"),
        DeviceRule("b", None, None, "m"),
    )


def test_docker_alone_knows_paths_and_the_host_their_numbers() -> None:
    found = spec({
        f"/run/docker/runtime-runc/moby/{WEB}/x": b"",
        f"{DOCKER}/hostconfig.json": HOSTCONFIG,
        f"{DOCKER}/config.v2.json": CONFIG_V2,
    }, WEB)  # fmt: skip
    assert found.devices == (
        SpecDevice("/dev/nvidiactl", "c", 195, 255, 0o666, None, None),
        SpecDevice("/dev/nvidia0", "c", 195, 1, 0o666, None, None),
    )
    assert found.rules == (
        DENY_ALL,
        DeviceRule("c", 195, 255, "rw"),
        DeviceRule("c", 195, 1, "rwm"),
        DeviceRule("c", 226, None, "rw"),
    )
    assert found.environment == {
        "NVIDIA_DRIVER_CAPABILITIES": "all", "NVIDIA_VISIBLE_DEVICES": "all",
    }  # fmt: skip
    assert found.cdi_names == ("nvidia.com/gpu=0",)
    assert found.hooks == ("nvidia-container-runtime", "nvidia-container-runtime-hook")


def test_paths_without_numbers_are_not_a_container_without_devices() -> None:
    files: dict[str, bytes | Unread] = {
        f"/run/docker/runtime-runc/moby/{WEB}/x": b"", f"{DOCKER}/hostconfig.json": HOSTCONFIG,
    }  # fmt: skip
    found = read(files, Unread("device_nodes", "no_answer"))[WEB]
    assert isinstance(found, Unread)
    assert (found.path, found.why) == (f"{DOCKER}/hostconfig.json", "no_answer")


def test_privileged_docker_allows_all() -> None:
    config = docker_devices.parse_hostconfig(b'{"Privileged": true}')
    assert docker_devices.as_oci_devices(config, {}, {}).rules == (
        DeviceRule(None, None, None, "rwm"),
    )


@pytest.mark.parametrize(
    ("request_", "visible"),
    [({"Count": 2}, "0,1"), ({"Count": 0}, ""), ({"DeviceIDs": ["GPU-1", "3"]}, "GPU-1,3"),
     ({"Driver": "nvidia", "Count": -1}, "all"), ({"Driver": "amd", "Count": -1}, None)],
)  # fmt: skip
def test_gpus_of_docker(request_: dict[str, Any], visible: str | None) -> None:
    data = json.dumps({"DeviceRequests": [request_]}).encode()
    assert docker_devices.parse_hostconfig(data).visible == visible


def test_the_oci_config_is_before_the_state_and_docker_last() -> None:
    found = spec({
        f"{TASK}/moby/{WEB}/config.json": OCI_CONFIG,
        f"/run/docker/runtime-runc/moby/{WEB}/state.json": RUNC_STATE,
        f"{DOCKER}/hostconfig.json": HOSTCONFIG,
    }, WEB)  # fmt: skip
    assert found.source == f"{TASK}/moby/{WEB}/config.json"


def test_a_config_that_cannot_be_read_is_not_replaced_by_an_older_one() -> None:
    path = f"{TASK}/moby/{WEB}/config.json"
    for bad, why in ((Unread(path, "refused"), "refused"), (b"{", "malformed")):
        found = read({path: bad, f"{DOCKER}/hostconfig.json": HOSTCONFIG})[WEB]
        assert isinstance(found, Unread)
        assert (found.path, found.why) == (path, why)


def test_a_container_without_any_config_is_unread() -> None:
    log = f"/var/log/containers/web-0_shop_app-{APP}.log"
    found = read({log: b""})[APP]
    assert isinstance(found, Unread)
    assert found.why == "absent"


def test_podman_crio_and_crun() -> None:
    run, lib = container_files.STORAGE_RUN, container_files.STORAGE_LIB
    found = read({
        f"{run}/{APP}/userdata/config.json": OCI_CONFIG,
        f"{run}/{WEB}/userdata/shm": b"",
        f"{lib}/{WEB}/userdata/config.json": OCI_CONFIG,
        "/run/crun/c1/config.json": OCI_CONFIG,
    })  # fmt: skip
    sources = {key: one.source for key, one in found.items() if isinstance(one, DeviceSpec)}
    assert sources == {
        APP: f"{run}/{APP}/userdata/config.json",
        WEB: f"{lib}/{WEB}/userdata/config.json",
        "c1": "/run/crun/c1/config.json",
    }


# --- hostile ----------------------------------------------------------------------------

KEYS = st.sampled_from(["path", "type", "major", "minor", "access", "allow"])
JSONS: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["c", "b", "a", "rwm", "/dev/x", "bind", -1, 99, 195]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(KEYS, inner),
    max_leaves=8,
)  # fmt: skip


@given(JSONS, st.sampled_from([OCI_CONFIG, RUNC_STATE, HOSTCONFIG, CONFIG_V2]), st.integers(0, 99))
def test_anything_in_the_place_of_a_value(value: Any, data: bytes, where: int) -> None:
    document = json.loads(data)
    places: list[tuple[Any, Any]] = []

    def walk(inner: Any) -> None:
        keys = inner.keys() if isinstance(inner, dict) else range(len(inner))
        for key in keys:
            places.append((inner, key))
            if isinstance(inner[key], dict | list):
                walk(inner[key])

    walk(document)
    inner, key = places[where % len(places)]
    inner[key] = value
    raw = json.dumps(document).encode()
    for parse in (
        oci_devices.parse_config, oci_devices.parse_state, docker_devices.parse_hostconfig,
        docker_devices.parse_environment,
    ):  # fmt: skip
        for seen in (raw, sieve.keep_container_config(raw), sieve.keep_runtime_state(raw)):
            with suppress(ParseProblem):
                hash(str(parse(seen)))


@pytest.mark.parametrize(
    "rule",
    [{"access": ""}, {"access": "x"}, {"access": "rwmr"}, {"access": "rw", "type": "d"},
     {"access": "rw", "major": "1"}, {"access": "rw", "minor": 1 << 40},
     {"access": "rw", "major": True}, {"access": "rw", "major": -2}],
)  # fmt: skip
def test_rules_that_are_none(rule: dict[str, Any]) -> None:
    data = json.dumps({"linux": {"resources": {"devices": [rule]}}}).encode()
    with pytest.raises(ParseProblem):
        oci_devices.parse_config(data)


def test_a_config_of_three_megabytes_is_not_read() -> None:
    path = f"{TASK}/k8s.io/{APP}/config.json"
    found = read({path: b'{"x": "' + b"y" * (3 << 20) + b'"}'})[APP]
    assert isinstance(found, Unread)
    assert found.why == "too_big"


# --- the sieve --------------------------------------------------------------------------


def test_the_sieve_leaves_all_that_is_read_here_and_no_secret() -> None:
    for parse, keep, data in (
        (oci_devices.parse_config, sieve.keep_container_config, OCI_CONFIG),
        (oci_devices.parse_state, sieve.keep_runtime_state, RUNC_STATE),
        (docker_devices.parse_hostconfig, sieve.keep_container_config, HOSTCONFIG),
        (docker_devices.parse_environment, sieve.keep_container_config, CONFIG_V2),
    ):
        assert b"hunter2" in data
        kept = keep(data)
        assert b"hunter2" not in kept
        assert parse(kept) == parse(data)


def test_names_of_variables_are_those_that_the_sieve_keeps() -> None:
    assert oci_devices.ENVIRONMENT_NAME.pattern.encode() == sieve.ENVIRONMENT_NAMES.pattern
