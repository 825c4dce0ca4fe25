import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.case_host import parse_case

from seawall.host.bundle import Bundle, open_bundle
from seawall.host.bundle_writer import write_bundle
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.recording import Recording, Round
from seawall.problems import BundleProblem
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot


def written(rounds: list[Round], path: Path) -> Path:
    with path.open("wb") as out:
        write_bundle(rounds, {"tool_version": "test"}, out)
    return path


def hostile_round() -> Round:
    round_ = Round()
    round_.files["/proc/meminfo"] = b"MemTotal: 1 kB\n"
    round_.files["/proc/9/stat"] = b"9 (a\n\x1b[31m) S"
    round_.files["/sys/fs/cgroup/we ird\n%41\x1b\udcff/memory.stat"] = b"anon 1\n"
    round_.files["/proc/slabinfo"] = Unread("/proc/slabinfo", "refused", "Permission denied")
    round_.names["/proc"] = ("9/", "meminfo")
    round_.names["/gone"] = Unread("/gone", "vanished", "x")
    round_.links["/proc/9/exe"] = "/bin/a\nb"
    round_.probes["page_size", ""] = 65536
    round_.probes["inode", "/x"] = Unread("inode", "absent", "y")
    return round_


def test_every_answer_comes_back_as_it_was(tmp_path: Path) -> None:
    first, second = hostile_round(), hostile_round()
    second.files["/proc/meminfo"] = b"MemTotal: 2 kB\n"
    del second.files["/proc/9/stat"]
    bundle = open_bundle(str(written([first, second], tmp_path / "b")))
    for round_, host in zip((first, second), bundle.rounds, strict=True):
        for path, answer in round_.files.items():
            assert host.read(path) == answer
        for path, names in round_.names.items():
            assert host.names(path) == names
        for path, link in round_.links.items():
            assert host.link(path) == link
        for (probe, argument), answer in round_.probes.items():
            assert host.ask(probe, argument) == answer
    assert bundle.rounds[1].read("/proc/9/stat") == Unread(
        "/proc/9/stat", "not_captured", "the bundle does not hold it"
    )


def test_unpacked_bundle_answers_the_same(tmp_path: Path) -> None:
    packed = written([hostile_round()], tmp_path / "b")
    (tmp_path / "dir").mkdir()
    subprocess.run(["tar", "-xf", packed, "-C", tmp_path / "dir"], check=True)
    host = open_bundle(str(tmp_path / "dir")).rounds[0]
    for path, answer in hostile_round().files.items():
        assert host.read(path) == answer


def test_live_recorded_and_replayed_are_equal(tmp_path: Path) -> None:
    recording = Recording(LiveHost())
    live = Snapshot(recording)
    seen = (live.get(Meminfo), live.get(Kernel))
    replayed = Snapshot(open_bundle(str(written(recording.rounds, tmp_path / "b"))).rounds[0])
    assert (replayed.get(Meminfo), replayed.get(Kernel)) == seen
    assert not isinstance(seen[0], Unread)


def test_files_are_legible_with_tar_alone(tmp_path: Path) -> None:
    with tarfile.open(written([hostile_round()], tmp_path / "b")) as archive:
        names = archive.getnames()
        assert "1/files/proc/meminfo" in names
        assert all(name.isascii() and name.isprintable() for name in names)
        assert all(member.mode == 0o600 for member in archive.getmembers())


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]], path: Path, mode: str = "w:gz") -> str:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


MANIFEST = json.dumps({"schema": "seawall.bundle/1", "rounds": 1}).encode()


def good_members() -> list[tuple[tarfile.TarInfo, bytes]]:
    return [
        (tarfile.TarInfo("MANIFEST.json"), MANIFEST),
        (tarfile.TarInfo("1/answers.json"), b"{}"),
    ]


def linked(kind: bytes, name: str = "1/files/proc/meminfo") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = "/etc/shadow"
    return info


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ((tarfile.TarInfo("1/files/../../etc/x"), b"x"), "does not belong"),
        ((tarfile.TarInfo("/etc/x"), b"x"), "does not belong"),
        ((tarfile.TarInfo("setup.py"), b"x"), "does not belong"),
        ((linked(tarfile.SYMTYPE), b""), "not a plain file"),
        ((linked(tarfile.LNKTYPE), b""), "not a plain file"),
        ((linked(tarfile.CHRTYPE), b""), "not a plain file"),
        ((tarfile.TarInfo("1/files/big"), b"\0" * (17 << 20)), "over"),
    ],
    ids=["climbs", "absolute", "foreign", "symlink", "hardlink", "device", "large"],
)
def test_hostile_member_is_refused(
    extra: tuple[tarfile.TarInfo, bytes], words: str, tmp_path: Path
) -> None:
    path = tar_of([*good_members(), extra], tmp_path / "b")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(BundleProblem, match=words):
        open_bundle(path)
    assert sorted(os.listdir(tmp_path)) == before


def test_bomb_is_refused_early(tmp_path: Path) -> None:
    zeros = bytes(15 << 20)
    many = [(tarfile.TarInfo(f"1/files/{n}"), zeros) for n in range(20)]
    path = tar_of([*good_members(), *many], tmp_path / "b")
    assert os.path.getsize(path) < 1 << 20
    with pytest.raises(BundleProblem, match="256 MiB"):
        open_bundle(path)


@pytest.mark.parametrize("size", [0, 1, 10, 100])
def test_bundle_cut_before_its_first_moment_is_refused(size: int, tmp_path: Path) -> None:
    whole = written([hostile_round()], tmp_path / "whole").read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[:size])
    with pytest.raises(BundleProblem):
        open_bundle(str(cut))


def test_every_cut_of_a_plain_tar_is_refused(tmp_path: Path) -> None:
    """Without gzip's checksum a cut can fall between two members."""
    path = tar_of([*good_members(), (tarfile.TarInfo("1/files/x"), b"1")], tmp_path / "b", "w:")
    whole = Path(path).read_bytes()
    cut = tmp_path / "cut"
    for size in range(0, 1024, 64):
        cut.write_bytes(whole[:size])
        with pytest.raises(BundleProblem):
            open_bundle(str(cut))


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (b"[]", "expected an object"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"schema": "other/1"}', "expected schema"),
        (b'{"schema": "seawall.bundle/1", "rounds": 1e9}', "rounds"),
        (b'{"schema": "seawall.bundle/1", "rounds": -1}', "rounds"),
        (b'{"schema": "seawall.bundle/1", "rounds": 7}', "no 2/answers.json"),
    ],
)
def test_bad_manifest_is_one_clear_line(manifest: bytes, words: str, tmp_path: Path) -> None:
    members = [(tarfile.TarInfo("MANIFEST.json"), manifest), good_members()[1]]
    with pytest.raises(BundleProblem, match=words) as caught:
        open_bundle(tar_of(members, tmp_path / "b"))
    assert "\n" not in str(caught.value)


def test_answers_of_wrong_shapes_are_not_believed(tmp_path: Path) -> None:
    answers = {
        "unread": {"/a": ["no such reason", "x"], "/b": 7},
        "names": {"/c": [1, 2], "/d": {"!unread": "x"}},
        "links": {"/e": 5},
        "probes": [["p"], 7, ["q", "", {"!unread": ["refused", "z"]}]],
        "same": 12,
    }
    members = [good_members()[0], (tarfile.TarInfo("1/answers.json"), json.dumps(answers).encode())]
    bundle: Bundle = open_bundle(tar_of(members, tmp_path / "b"))
    host = bundle.rounds[0]
    for path in ("/a", "/b", "/never"):
        assert isinstance(host.read(path), Unread)
    assert isinstance(host.names("/c"), Unread)
    assert isinstance(host.names("/d"), Unread)
    assert isinstance(host.link("/e"), Unread)
    assert host.ask("q") == Unread("q", "refused", "z")


def test_link_in_an_unpacked_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1/files").mkdir(parents=True)
    (tmp_path / "MANIFEST.json").write_bytes(MANIFEST)
    (tmp_path / "1/answers.json").write_text("{}")
    (tmp_path / "1/files/x").symlink_to("/etc/passwd")
    with pytest.raises(BundleProblem, match="cannot be read"):
        open_bundle(str(tmp_path))


def test_case_rounds_fold_into_a_bundle(tmp_path: Path) -> None:
    case = parse_case(
        b"why: x\n=== /proc/meminfo\nMemTotal: 2 kB\nMemFree: 1 kB\n=== round 2 +2.5\n"
        b"=== /proc/meminfo\nMemTotal: 2 kB\nMemFree: 0 kB\n"
    )
    bundle = open_bundle(str(written(list(case.records), tmp_path / "b")))
    assert bundle.rounds[1].read("/proc/meminfo") == b"MemTotal: 2 kB\nMemFree: 0 kB\n"
    now = [host.ask("now") for host in bundle.rounds]
    assert now[1]["monotonic_seconds"] - now[0]["monotonic_seconds"] == 2.5  # type: ignore[index,call-overload,operator]
