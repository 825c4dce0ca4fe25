"""/etc/seawall/slurm.toml: what is unknown is refused, and a node gets what is meant for it."""

from pathlib import Path

import pytest

from seawall.cli.node_look import NAMES
from seawall.cli.slurm_file import SlurmSettings, load, name_matches, parse
from seawall.problems import UsageProblem

FILE = b"""
[checks]
processes = "drain"
stuck = "off"
dcgm = "drain"
[wanted]
mounts = ["/home", "/scratch lustre"]
free_percent = { "/tmp" = 5 }
[[nodes]]
names = "gpu[01-64],big1"
gpus = 8
[[nodes]]
names = "gpu07"
gpus = 4
[[commands]]
name = "dcgm"
run = ["/usr/local/sbin/dcgm"]
seconds = 3
[brake]
share = 0.02
[slurm]
commands = "/opt/slurm/bin"
"""


def settings(node: str, text: bytes = FILE) -> SlurmSettings:
    return parse(text, "slurm.toml", node, NAMES)


def test_one_file_for_all_nodes() -> None:
    found = settings("gpu08")
    assert (found.wanted.gpus, settings("gpu07").wanted.gpus, settings("cpu1").wanted.gpus) == (
        8, 4, None,
    )  # fmt: skip
    assert found.wanted.mounts == ("/home", "/scratch lustre")
    assert [found.mode(name) for name in ("processes", "stuck", "shm", "dcgm")] == [
        "drain", "off", "report", "drain",
    ]  # fmt: skip
    assert (found.limits.share, found.limits.most, found.folders) == (0.02, 10, "/opt/slurm/bin")
    assert found.commands[0].words == ("/usr/local/sbin/dcgm",)


def test_no_file_drains_for_nothing() -> None:
    found = load(None, "n1", NAMES)
    assert {found.mode(name) for name in NAMES} == {"report"}


@pytest.mark.parametrize(
    ("pattern", "name", "is_in"),
    [
        ("gpu[01-64]", "gpu07", True), ("gpu[01-64]", "gpu7", False), ("gpu[1-64]", "gpu7", True),
        ("gpu[01-64]", "gpu65", False), ("a[1,5-6],b", "a5", True), ("a[1,5-6],b", "b", True),
        ("a[1,5-6],b", "a2", False), ("r[1-2]n[1-4]", "r2n4", True),
        ("r[1-2]n[1-4]", "r3n4", False),
        ("gpu[1-120]", "gpu101", True), ("x.y", "xzy", False),
    ],
)  # fmt: skip
def test_names_as_slurm_writes_them(pattern: str, name: str, *, is_in: bool) -> None:
    assert name_matches(pattern, name) == is_in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[checks]\nproceses = 'drain'", "no such check"),
        ("[checks]\nshm = true", "expected report, drain or off"),
        ("[checks]\nmunge = 'drain'", "a node is not drained for that"),
        ("[wanted]\ngpu = 8", "no such key"),
        ("[wanted]\ngpus = 'eight'", "expected a whole number"),
        ("[wanted]\nmounts = '/home'", "expected a list"),
        ("[wanted]\nsmt = 1", "expected true or false"),
        ("[wanted]\nfree_percent = {'/tmp' = 500}", "percent"),
        ("[[nodes]]\ngpus = 8", "names"),
        ("[[nodes]]\nnames = 'gpu[1-x]'\ngpus = 8", "names"),
        ("[brake]\nshare = 0.5", "at most 0.05"),
        ("[brake]\nnodes = 11", "1 to 10"),
        ("[slurm]\ncommands = 'bin'", "whole path"),
        ("[[commands]]\nname = 'gpu'\nrun = ['/x']", "no check has"),
        ("[[commands]]\nname = 'x'\nrun = ['x']", "whole path"),
        ("[[commands]]\nname = 'x'\nrun = ['/x']\nseconds = 100", "at most"),
        ("[drain]\nx = 1", "no such key"),
        ("= 1", "not TOML"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(text: str, words: str) -> None:
    with pytest.raises(UsageProblem, match=words):
        settings("n1", text.encode())


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "slurm.toml"
    path.write_bytes(FILE)
    path.chmod(0o644)
    assert load(str(path), "gpu07", NAMES).wanted.gpus == 4
    path.chmod(0o664)
    with pytest.raises(UsageProblem, match="others may write"):
        load(str(path), "gpu07", NAMES)
    with pytest.raises(UsageProblem, match="No such file"):
        load(str(tmp_path / "nowhere"), "gpu07", NAMES)
