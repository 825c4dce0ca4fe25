# SPDX-License-Identifier: Apache-2.0
"""What is looked at: of this machine, and of trees of version 1 and 2 that are files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.actions.mounts import find_mounts
from seawall.actions.orders import Mounts
from seawall.blackbox.round_frames import RoundReader, RoundWriter
from seawall.guard.tick_facts import Group, Outside
from seawall.host.bundle import BundleHost
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.recording import Round
from seawall.readings.kernel import Kernel
from seawall.readings.memcg import Memcgs
from seawall.readings.snapshot import Snapshot
from seawall.recorder import group_files
from seawall.recorder.frame_chain import clocks
from seawall.recorder.samples import CheapHost, Samples, leading


def _group(path: str, charge: int, likely: int = 0) -> Group:
    group = Group(path, 1)
    group.charge_bytes, group.outside = charge, Outside(0, likely, likely, "")
    return group


def _full(samples: Samples, groups: tuple[Group, ...] = ()) -> Round:
    *steps, round_ = samples.full(groups)
    assert not any(steps)
    assert round_ is not None
    return round_


@pytest.fixture
def mounts() -> Mounts:
    return find_mounts(Path("/proc/self/mountinfo").read_text())


def test_a_full_round_answers_what_is_judged(mounts: Mounts) -> None:
    samples = Samples(mounts)
    samples.ask_names()
    reader, writer = RoundReader(), RoundWriter()
    taken = reader.take(writer.body(_full(samples), "full"))
    assert taken is not None
    snapshot = Snapshot(BundleHost(taken.round))
    for topic in (Kernel, Headroom, Ledger, MemoryGroups):
        value = snapshot.get(topic)
        assert not isinstance(value, Unread), value
    groups = snapshot.get(MemoryGroups)
    assert isinstance(groups, MemoryGroups)
    live = Snapshot(LiveHost("/")).get(Memcgs)
    assert isinstance(live, Memcgs)
    assert set(groups.by_path) == set(live.by_path) - {"/"}
    assert not groups.unread
    assert not [unread for group in groups.by_path.values() for unread in group.memcg.unread]


def test_no_process_and_no_disk_is_asked(mounts: Mounts) -> None:
    round_ = _full(Samples(mounts))
    asked = [path for path, data in round_.files.items() if isinstance(data, bytes)]
    own = ("/proc/1/mountinfo", "/proc/self/mountinfo", "/proc/1/cgroup", "/proc/self/cgroup")
    assert not [p for p in asked if p.startswith("/proc/") and p[6].isdigit() and p not in own]
    assert not [p for p in asked if not p.startswith(("/proc/", "/sys/", "/run/seawall/"))]
    assert "/proc/slabinfo" not in asked


def test_what_may_wait_is_not_captured_rather_than_absent() -> None:
    host = CheapHost(LiveHost("/"))
    for path in ("/proc/slabinfo", "/proc/vmallocinfo", "/etc/passwd", "/proc/1/maps", "/dev/kmsg"):
        answer = host.read(path)
        assert isinstance(answer, Unread)
        assert answer.why == "not_captured"
    assert isinstance(host.names("/var/log/pods"), Unread)
    assert isinstance(host.link("/proc/1/root/etc/localtime"), Unread)
    assert isinstance(host.ask("descriptors"), Unread)


def test_those_that_lead_hold_most_with_what_is_outside() -> None:
    groups = [_group(f"/g{number}", number << 20) for number in range(20)]
    groups.append(_group("/driver", 1 << 20, likely=1 << 30))
    assert leading(groups) == ["/driver", *(f"/g{number}" for number in range(19, 12, -1))]
    assert leading([]) == []


def _tree(root: Path, version: int, paths: dict[str, dict[str, str]]) -> Mounts:
    for path, more in paths.items():
        folder = root / path
        folder.mkdir(parents=True, exist_ok=True)
        texts = dict.fromkeys((*group_files.WHOLE[version], "cgroup.type"), "7\n")
        for name, text in (texts | more).items():
            (folder / name).write_text(text)
    return Mounts(str(root), version)


class _Files:
    """A tree anywhere, as a ``Host``."""

    def read(self, path: str, limit_bytes: int = 0) -> bytes | Unread:
        try:
            return Path(path).read_bytes()
        except OSError:
            return Unread(path, "absent")

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        yield from map(self.read, paths)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        try:
            found = os.scandir(path)
        except OSError:
            return Unread(path, "absent")
        return tuple(sorted(entry.name + "/" * entry.is_dir() for entry in found))


@pytest.mark.parametrize("version", [1, 2])
def test_those_that_lead_or_are_near_their_limit_are_read_whole(
    tmp_path: Path, version: int
) -> None:
    limit = "memory.max" if version == 2 else "memory.limit_in_bytes"
    use = "memory.current" if version == 2 else "memory.usage_in_bytes"
    paths: dict[str, dict[str, str]] = {
        ".": {}, "pods/calm": {limit: "1000\n", use: "10\n"}, "pods/leads": {limit: "max\n"},
        "pods/near": {limit: "1000\n", use: "950\n"},
    }  # fmt: skip
    mounts = _tree(tmp_path, version, paths)
    round_ = Round()
    host = _Files()
    steps = list(group_files.walk(host, mounts, {"/pods/leads"}, round_))  # type: ignore[arg-type]
    assert len(steps) == 5
    kept = {path: set(found) for path in paths if (found := _names(round_, mounts, path))}
    assert kept["pods/calm"] == set(group_files.EACH[version])
    assert kept["pods/leads"] == kept["pods/near"] == set(group_files.WHOLE[version])
    for folder, names in round_.names.items():
        assert not isinstance(names, Unread)
        files = [f"{folder}/{name}" for name in names if not name.endswith("/")]
        assert all(isinstance(round_.files[file], bytes) for file in files)
    assert len(round_.files) == sum(map(len, round_.names.values())) - 4  # the folders


def _names(round_: Round, mounts: Mounts, path: str) -> tuple[str, ...]:
    names = round_.names[mounts.memory if path == "." else f"{mounts.memory}/{path}"]
    assert not isinstance(names, Unread)
    return names


def test_cgroups_that_vanish_in_the_middle_leave_no_problem(tmp_path: Path) -> None:
    mounts = _tree(tmp_path, 2, {".": {}, "a": {}, "b": {}, "b/c": {}})
    round_ = Round()
    for number, _ in enumerate(group_files.walk(_Files(), mounts, (), round_)):  # type: ignore[arg-type]
        if number == 1:
            for folder in ("b/c", "b"):
                for file in (tmp_path / folder).iterdir():
                    file.unlink()
                (tmp_path / folder).rmdir()
    assert isinstance(round_.names[f"{tmp_path}/b"], Unread)
    quick = Round()
    group_files.quick(_Files(), mounts, ["/b"], quick)  # type: ignore[arg-type]
    assert all(isinstance(data, Unread) for data in quick.files.values())


def test_a_light_round_is_small_and_has_its_clock(mounts: Mounts) -> None:
    samples = Samples(mounts)
    round_ = samples.light([_group("/", 1)])
    assert len(round_.files) <= 10 + len(group_files.QUICK[mounts.version])
    unix, monotonic = clocks(round_)
    assert unix > 1.7e9
    assert monotonic > 0
    assert len(samples.quick().files) <= 10
