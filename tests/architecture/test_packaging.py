"""The unit, the DaemonSet and their words: they name what the code needs, and systemd agrees."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.architecture.manifest import PACKAGING
from tests.architecture.manifest import manifest as read_manifest

from seawall import kubelet_folders
from seawall.guard import lock_file
from seawall.guard.config import PATH, parse
from seawall.guard.keys import BY_NAME
from seawall.guard.launcher import WRONG_FILE_SECONDS
from seawall.guard.settings import Settings
from seawall.guard.tell.termination import LOG_LINKS
from seawall.host import cri
from seawall.own_process import OOM_SCORE_ADJ
from seawall.proc.process_rights import NAMES
from seawall.readings import container_files
from seawall.version import VERSION

UNIT = PACKAGING / "seawall-guard.service"


def directives() -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        name, is_set, value = line.partition("=")
        if is_set and not line.startswith(("#", "[")):
            rows.setdefault(name, []).append(value)
    return rows


def test_the_unit_runs_undoes_and_watches() -> None:
    unit = directives()
    assert unit["ExecStart"] == ["/usr/bin/seawall guard run"]
    assert unit["ExecStopPost"] == ["/usr/bin/seawall guard undo --after-stop"]
    assert unit["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert unit["Type"] == ["notify"]
    # A guard that died is back at once, and for ever, whatever its exit status was: 2 may be a
    # full /run or a fork that was refused in the very shortage.  ``start.hold_back`` slows down.
    assert (unit["Restart"], unit["RestartSec"], unit["StartLimitIntervalSec"]) == (
        ["always"], ["1"], ["0"],
    )  # fmt: skip
    assert "RestartPreventExitStatus" not in unit
    assert int(unit["TimeoutStartSec"][0]) > WRONG_FILE_SECONDS + 20
    assert unit["OOMScoreAdjust"] == [str(OOM_SCORE_ADJ)]
    assert unit["LimitMEMLOCK"] == ["infinity"]
    assert f"/run/{unit['RuntimeDirectory'][0]}" == lock_file.FOLDER
    slowest = BY_NAME["tick_most_seconds"].most
    assert slowest is not None
    assert int(unit["WatchdogSec"][0]) >= 3 * slowest


def test_the_metrics_unit_is_one_that_systemd_takes() -> None:
    """And changes nothing on the machine: it reads two files."""
    text = (PACKAGING / "seawall-metrics.service").read_text()
    assert "ExecStart=/usr/bin/seawall guard metrics\n" in text
    assert {"CapabilityBoundingSet=", "ProtectSystem=strict"} <= set(text.splitlines())
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    done = subprocess.run(
        [verify, "verify", "--man=no", str(PACKAGING / "seawall-metrics.service")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    words = [line for line in done.stderr.splitlines() if "seawall-metrics" in line]
    assert not [line for line in words if "is not executable" not in line], done.stderr


def test_the_agents_unit_is_one_that_systemd_takes() -> None:
    """It has what it uses once, and may write nowhere."""
    text = (PACKAGING / "seawall-agent.service").read_text()
    assert "ExecStart=/usr/bin/seawall agent\n" in text
    assert {
        "CapabilityBoundingSet=CAP_IPC_LOCK CAP_SYS_NICE CAP_SETPCAP", "ProtectSystem=strict",
        "NoNewPrivileges=yes",
    } <= set(text.splitlines())  # fmt: skip
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    done = subprocess.run(
        [verify, "verify", "--man=no", str(PACKAGING / "seawall-agent.service")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    words = [line for line in done.stderr.splitlines() if "seawall-agent" in line]
    assert not [line for line in words if "is not executable" not in line], done.stderr


def test_the_unit_hides_nothing_that_the_guard_looks_at() -> None:
    unit = directives()
    forbidden = {
        "ProtectControlGroups", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc",
        "ProtectClock", "PrivateDevices", "PrivateNetwork", "PrivateUsers", "RestrictRealtime",
        "MemoryMax", "CPUQuota", "ProtectHostname",
    }  # fmt: skip
    assert not forbidden & set(unit)
    assert "/sys/fs/cgroup" in " ".join(unit["ReadWritePaths"])
    for words in unit["SystemCallFilter"]:
        assert words.startswith("~"), "what a systemd does not know stays allowed"
        assert "@resources" not in words


def test_every_capability_has_its_reason() -> None:
    named = set(re.findall(r"CAP_(\w+)", " ".join(directives()["CapabilityBoundingSet"])))
    told = re.findall(r"^# ([A-Z_]+) {2,}\S", UNIT.read_text(), re.MULTILINE)
    assert sorted(told) == sorted(named)
    assert named == {name.removeprefix("CAP_") for name in NAMES.values()}


def test_each_line_that_takes_a_right_has_its_reason() -> None:
    """A comment above it, or above the line of the same name before it."""
    lines = UNIT.read_text().partition("\nUMask=")[2].partition("\n[Install]")[0].splitlines()[1:]
    bare, before = [], ""
    for line in lines:
        name = line.partition("=")[0]
        if line and not line.startswith("#") and not before.startswith(("#", f"{name}=")):
            bare.append(line)
        before = line
    assert not bare


def test_what_systemd_still_asks_for_is_left_out_for_a_reason(unit_here: Path) -> None:
    """Each point of its figure is a right that the table names, or a directive that a comment of
    the unit names.
    """
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit_here)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    points = re.findall(r"^✗ (\w+)=", done.stdout, re.MULTILINE)
    assert "User" in points, done.stdout + done.stderr
    text = UNIT.read_text()
    assert not [name for name in points if f"{name}=" not in text]


@pytest.fixture
def unit_here(tmp_path: Path) -> Path:
    """The unit with a program that is on this machine: systemd looks whether it is."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text().replace("/usr/bin/seawall", "/bin/true"))
    return path


@pytest.mark.system
def test_systemd_takes_every_line(unit_here: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit_here)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.system
def test_systemd_finds_it_hardened(unit_here: Path) -> None:
    """``security`` knows 9.6 for a unit without any of it."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit_here)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) <= 5.9, "the figure that the unit states"


def test_the_image_is_the_one_that_the_daemonset_names(manifest: dict[str, Any]) -> None:
    (container,) = manifest["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"seawall:{VERSION}"
    recipe = (PACKAGING / "Containerfile").read_text()
    assert f"-t {container['image']} ." in recipe
    copied = re.findall(r"^COPY (\S+) ", recipe, re.MULTILINE)
    kept = (PACKAGING.parent / ".dockerignore").read_text().splitlines()
    assert copied == ["src/seawall", "packaging/seawall"]
    assert kept == ["*", *(f"!{name}" for name in copied), "**/__pycache__"]


def test_the_program_needs_no_site() -> None:
    program = PACKAGING / "seawall"
    assert program.stat().st_mode & 0o111 == 0o111
    assert program.read_text().startswith("#!/usr/bin/python3 -IS\n")


# --- DaemonSet -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    """By kind."""
    return read_manifest()


def test_the_daemonset_gives_what_the_code_needs(manifest: dict[str, Any]) -> None:
    pod = manifest["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (pod["hostPID"], pod["hostNetwork"]) == ("true", "true")
    assert pod["priorityClassName"] == "system-node-critical"
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert container["command"] == ["seawall", "guard", "run"]
    assert container["lifecycle"]["preStop"]["exec"]["command"] == ["seawall", "guard", "undo"]
    assert "limits" not in container["resources"]
    assert not {"livenessProbe", "readinessProbe", "startupProbe"} & set(container)


def test_the_daemonset_has_the_units_capabilities_and_no_more(manifest: dict[str, Any]) -> None:
    (container,) = manifest["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    context = container["securityContext"]
    assert "privileged" not in context
    # An API server refuses "false" beside CAP_SYS_ADMIN.
    assert "allowPrivilegeEscalation" not in context
    assert context["capabilities"]["drop"] == ["ALL"]
    named = re.findall(r"CAP_(\w+)", " ".join(directives()["CapabilityBoundingSet"]))
    assert sorted(context["capabilities"]["add"]) == sorted(named)
    assert context["seccompProfile"] == context["appArmorProfile"] == {"type": "Unconfined"}


def test_the_daemonsets_folders_are_the_hosts(manifest: dict[str, Any]) -> None:
    pod = manifest["DaemonSet"]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    places = {m["mountPath"]: m for m in pod["containers"][0]["volumeMounts"]}
    for path, volume in ((path, volumes[m["name"]]) for path, m in places.items()):
        if "hostPath" in volume:
            assert volume["hostPath"]["path"] == path
    written = {path for path, m in places.items() if "readOnly" not in m}
    assert written == {
        lock_file.FOLDER, "/sys/fs/cgroup", "/sys/kernel/tracing",
        "/var/lib/kubelet/pods", "/tmp", "/var/lib/seawall",
    }  # fmt: skip
    assert {m["name"] for m in places.values()} == set(volumes)


def test_the_daemonset_mounts_what_the_guard_opens_and_no_more(manifest: dict[str, Any]) -> None:
    """By the code's own tables; ``test_guard_opens.py`` has it from a guard that runs."""
    pod = manifest["DaemonSet"]["spec"]["template"]["spec"]
    places = {m["mountPath"]: m for m in pod["containers"][0]["volumeMounts"]}
    assert set(places) == {
        str(Path(PATH).parent), lock_file.FOLDER, str(Path(Settings().blackbox).parent),
        "/sys/fs/cgroup", "/sys/kernel/tracing", "/sys/kernel/debug",
        f"{kubelet_folders.ROOTS[0]}/pods", container_files.POD_LOGS, LOG_LINKS,
        container_files.CONTAINERD[0], container_files.STORAGE_RUN, "/tmp",
    }  # fmt: skip
    # What moves below a mount that is none of ours must move here, too.
    moving = {path for path in places if path.startswith("/run/con") or path.endswith("/pods")}
    moving.discard(container_files.POD_LOGS)
    assert {p for p, m in places.items() if m.get("mountPropagation")} == moving


def test_no_socket_of_a_runtime_is_in_the_pod(manifest: dict[str, Any]) -> None:
    """Files answer; who has a socket of the runtime has the node."""
    pod = manifest["DaemonSet"]["spec"]["template"]["spec"]
    paths = [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]
    sockets = [*cri.SOCKETS, "/run/systemd/private", "/run/dbus/system_bus_socket",
               "/run/docker.sock", "/var/run/docker.sock"]  # fmt: skip
    inside = [s for s in sockets for path in paths if f"{s}/".startswith(f"{path.rstrip('/')}/")]
    assert not inside


def test_each_mount_says_why() -> None:
    lines = (PACKAGING / "daemonset.yaml").read_text().split("volumeMounts:\n")[1].splitlines()
    lines = lines[: lines.index("      volumes:")]
    firsts = [at for at, line in enumerate(lines) if line.startswith("            - name:")]
    assert len(firsts) == 12
    assert not [lines[at] for at in firsts if not lines[at - 1].lstrip().startswith("# ")]


_TAG_ALONE = re.compile(
    r"^\s*(?:FROM|ARG BASE=)\s*(?!\$)(?!\S+@sha256:[0-9a-f]{64}(?:\s|$))\S.*$", re.MULTILINE
)


def test_the_base_of_the_image_is_a_digest() -> None:
    recipe = (PACKAGING / "Containerfile").read_text()
    assert not _TAG_ALONE.findall(recipe)
    assert recipe.count("@sha256:") == 1
    for bad in ("FROM debian:12-slim", "ARG BASE=debian:12-slim", "FROM a@sha256:12 AS b"):
        assert _TAG_ALONE.findall(bad), bad


def test_the_daemonsets_file_is_right_and_observes(manifest: dict[str, Any]) -> None:
    pod = manifest["DaemonSet"]["spec"]["template"]["spec"]
    folder, _, name = PATH.rpartition("/")
    places = {m["mountPath"]: m for m in pod["containers"][0]["volumeMounts"]}
    volume = next(v for v in pod["volumes"] if v["name"] == places[folder]["name"])
    assert places[folder]["readOnly"] == "true"
    assert volume["configMap"]["defaultMode"] == "0644"
    config = manifest["ConfigMap"]
    assert volume["configMap"]["name"] == config["metadata"]["name"]
    assert parse(config["data"][name].encode(), name) == Settings()


def test_system_priorities_are_for_named_namespaces_our_own_among_them(
    manifest: dict[str, Any],
) -> None:
    found = read_manifest(PACKAGING / "kubernetes/system-priorities.yaml")
    policy = found["ValidatingAdmissionPolicy"]
    binding = found["ValidatingAdmissionPolicyBinding"]
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    (selector,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    # Of all labels of a namespace the one that no tenant writes.
    assert (selector["key"], selector["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
    ours = manifest["DaemonSet"]
    assert ours["metadata"]["namespace"] in selector["values"]
    quota = read_manifest(PACKAGING / "kubernetes/tenant-quota.yaml")["ResourceQuota"]
    classes = quota["spec"]["scopeSelector"]["matchExpressions"][0]["values"]
    assert ours["spec"]["template"]["spec"]["priorityClassName"] in classes
    assert quota["spec"]["hard"] == {"pods": "0"}
