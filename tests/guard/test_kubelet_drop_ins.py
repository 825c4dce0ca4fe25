"""What a kubelet is called, and the drop-ins of its configuration that are merged into it."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.guard.test_tell_metrics import SCOPE, YAML, process

from seawall import kubelet_names
from seawall.guard.sense import standstill
from seawall.guard.tell import rivals
from seawall.guard.tell.rivals import eviction_of, find
from seawall.host.device_log import device_log_probe

HARD = "kind: KubeletConfiguration\nevictionHard:\n  memory.available: {}\n".format
OTHER = "evictionHard:\n  nodefs.available: 7%\n"
BELOW = "kubelet (pid 800) evicts below memory.available {}".format
UNSEEN = "kubelet (pid 800) has an eviction threshold that is not to be seen"


class Kubelet:
    """Process 800, with a configuration and a folder of drop-ins."""

    def __init__(self, proc: Path, *more: str) -> None:
        self.proc, self.etc = proc, proc / "800/root/etc"
        command = ("kubelet", "--config=/etc/kubelet.yaml", "--config-dir", "/etc/kubelet.d", *more)
        process(proc, 800, "kubelet", cmdline=command)
        self.folder = self.etc / "kubelet.d"
        self.folder.mkdir(parents=True)
        (self.etc / "kubelet.yaml").write_text(YAML)

    def says(self) -> str:
        (words,) = find(str(self.proc), SCOPE)
        return words


@pytest.fixture
def kubelet(tmp_path: Path) -> Kubelet:
    return Kubelet(tmp_path)


def test_the_last_drop_in_that_names_it_is_in_force(kubelet: Kubelet) -> None:
    assert kubelet.says() == BELOW("500Mi"), "there is none yet"
    for name, much in (("90-last", "3Gi"), ("20-first", "1Gi"), ("zz.yaml", "9Gi")):
        suffix = "" if "." in name else ".conf"
        (kubelet.folder / f"{name}{suffix}").write_text(HARD(much))
    assert kubelet.says() == BELOW("3Gi")
    (kubelet.folder / "95-others.conf").write_text(OTHER)
    assert kubelet.says() == BELOW("3Gi"), "keys that it does not name stay"
    inner = kubelet.folder / "92-more"
    inner.mkdir()
    (inner / "00.conf").write_text(HARD("4Gi"))
    assert kubelet.says() == BELOW("4Gi"), "a folder's stand where its name does"


def test_a_flag_is_over_all_of_them(tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path, "--eviction-hard=memory.available<7Gi")
    (kubelet.folder / "20.conf").write_text(HARD("1Gi"))
    assert kubelet.says() == BELOW("7Gi")
    (kubelet.folder / "30.conf").symlink_to("20.conf")
    assert kubelet.says() == BELOW("7Gi")


@pytest.mark.parametrize("kind", ["link", "pipe", "empty", "huge", "many", "deep", "none", "file"])
def test_one_that_cannot_be_read_may_be_the_one_in_force(kubelet: Kubelet, kind: str) -> None:
    path = kubelet.folder / "50.conf"
    (kubelet.folder / "20.conf").write_text(HARD("1Gi"))
    assert kubelet.says() == BELOW("1Gi")
    if kind == "link":
        path.symlink_to("20.conf")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind in ("empty", "huge"):
        path.write_text("" if kind == "empty" else HARD("2Gi") + "#" * (256 << 10))
    elif kind == "many":
        for number in range(70):
            (kubelet.folder / f"{number}.conf").write_text(OTHER)
    elif kind == "deep":
        (kubelet.folder / "/".join("d" * 70)).mkdir(parents=True)
    else:
        kubelet.folder.rename(kubelet.etc / "away")
        if kind == "file":
            kubelet.folder.write_text(HARD("2Gi"))
    assert kubelet.says() == UNSEEN


@pytest.mark.parametrize(
    ("arguments", "config", "drop_ins", "below"),
    [
        ([], "", [], "100Mi"),
        ([], "", [OTHER], "100Mi"),  # merged into the default
        ([], OTHER, [], ""),
        ([], OTHER, [HARD("2Gi"), OTHER], "2Gi"),
        ([], YAML, ["evictionHard: {memory.available: 5%}"], "5%"),
        (["--eviction-hard=memory.available<1Gi", "--eviction-hard=nodefs.available<5%"], "", [],
         "1Gi"),
        (["--eviction-hard=memory.available<1Gi", "--eviction-hard=memory.available<2Gi"], "", [],
         "2Gi"),
    ],
)  # fmt: skip
def test_what_they_come_to(
    arguments: Sequence[str], config: str, drop_ins: Sequence[str], below: str
) -> None:
    assert eviction_of(["kubelet", *arguments], config, drop_ins) == below


# --- names ---


@pytest.mark.parametrize("name", sorted(kubelet_names.WITH_KUBELET))
def test_one_that_has_a_kubelet_in_it_is_named(tmp_path: Path, name: str) -> None:
    process(tmp_path, 801, name)
    (words,) = find(str(tmp_path), SCOPE)
    assert words.startswith(f"{name} (pid 801) has a kubelet in it")


@pytest.mark.parametrize("name", sorted(kubelet_names.STARTERS))
def test_of_one_that_starts_a_kubelet_the_kubelet_is_asked(tmp_path: Path, name: str) -> None:
    process(tmp_path, 801, name)
    process(tmp_path, 802, "kubelet", cmdline=("kubelet", "--eviction-hard=memory.available<1Gi"))
    assert find(str(tmp_path), SCOPE) == ["kubelet (pid 802) evicts below memory.available 1Gi"]


def test_there_is_one_list() -> None:
    assert set(kubelet_names.UNITS) == {
        word for word in device_log_probe.JOURNAL if word.endswith(".service")
    }
    assert all(device_log_probe.PROGRAMS.match(name) for name in kubelet_names.PROGRAMS)
    assert all(len(name) <= 15 for name in kubelet_names.PROGRAMS), "as the kernel cuts comm"
    assert kubelet_names.PROGRAMS <= standstill.NAMES
    assert set(kubelet_names.UNITS) < standstill._UNITS
    assert rivals.KUBELETS == kubelet_names.PROGRAMS - kubelet_names.STARTERS
