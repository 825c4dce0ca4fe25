"""What is named on the command line and is no file: one line, at once, never a wait."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.end_to_end.warm_verbs import seawall

from seawall.cli.policy_file import load_policy
from seawall.host import input_file
from seawall.host.bundle import open_bundle
from seawall.host.host import Unread
from seawall.host.input_file import open_input
from seawall.host.live import LiveHost
from seawall.problems import BundleProblem, UsageProblem

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "docs/incidents/container-hangs/bundle.tar.gz"
AT_ONCE_SECONDS = 20


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Things that are no files, by what they are called."""
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.chdir(tmp_path)  # a socket's path has 108 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    return {
        "a FIFO": str(tmp_path / "fifo"),
        "a socket": str(tmp_path / "socket"),
        "a device": "/dev/zero",
        "a folder": str(tmp_path),
    }


@pytest.mark.parametrize("kind", ["a FIFO", "a socket", "a device", "a folder"])
def test_refused_with_what_was_expected_and_what_was_found(odd: dict[str, str], kind: str) -> None:
    with pytest.raises(UsageProblem, match=f"expected a bundle, found {kind}"):
        open_input(odd[kind], "a bundle")
    with pytest.raises(UsageProblem, match=f"expected mutes and thresholds, found {kind}"):
        load_policy(odd[kind])


@pytest.mark.parametrize("option", ["--from", "--rules"])
def test_verb_ends_at_once_with_one_line(odd: dict[str, str], option: str) -> None:
    words = [option, odd["a FIFO"]] + (["--from", str(BUNDLE)] if option == "--rules" else [])
    ran = seawall("why", *words, most_seconds=AT_ONCE_SECONDS)
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
    assert b"found a FIFO" in ran.err


def test_process_substitution_and_stdin_are_read() -> None:
    for script in (
        f"{sys.executable} -m seawall why --json --from <(cat {BUNDLE})",
        f"(sleep 1; cat {BUNDLE}) | {sys.executable} -m seawall why --json --from -",
        f"{sys.executable} -m seawall why --json --from - < {BUNDLE}",
    ):
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert b'"findings"' in done.stdout


def test_pipe_into_which_nobody_writes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_file, "SILENT_SECONDS", 0.3)
    reading, writing = os.pipe()
    began = time.monotonic()
    with pytest.raises(UsageProblem, match=r"nothing came for 0\.3 s"):
        open_bundle(f"/dev/fd/{reading}")
    assert time.monotonic() - began < AT_ONCE_SECONDS
    os.close(writing)
    with pytest.raises(BundleProblem, match="not a seawall bundle"):
        open_bundle(f"/dev/fd/{reading}")
    os.close(reading)


def test_slow_pipe_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    content = BUNDLE.read_bytes()

    def write() -> None:
        with open(writing, "wb", buffering=0) as out:
            for start in range(0, len(content), 1 + len(content) // 5):
                out.write(content[start : start + 1 + len(content) // 5])
                time.sleep(0.05)

    thread = threading.Thread(target=write)
    thread.start()
    assert open_bundle(f"/dev/fd/{reading}").rounds
    thread.join()
    os.close(reading)


def test_tree_with_fifos_and_devices_in_place_of_files(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    os.mkfifo(proc / "meminfo")
    os.mkfifo(proc / "uptime")
    writer = os.open(proc / "uptime", os.O_RDWR)  # one that never says anything
    (proc / "vmstat").symlink_to("/dev/zero")
    (proc / "swaps").write_text("Filename Type Size Used Priority\n")
    host = LiveHost(str(tmp_path), until=time.monotonic() + AT_ONCE_SECONDS)
    for name in ("meminfo", "uptime"):
        found = host.read(f"/proc/{name}")
        assert isinstance(found, Unread)
        assert found.why == "malformed"
    assert isinstance(host.read("/proc/swaps"), bytes)
    ran = seawall("why", "--whole", "--root", str(tmp_path), most_seconds=AT_ONCE_SECONDS)
    assert "no regular file" in ran.answered().text
    os.close(writer)


def test_unpacked_bundle_with_a_fifo_in_it_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "MANIFEST.json")
    with pytest.raises(BundleProblem, match="no plain file"):
        open_bundle(str(tmp_path))
