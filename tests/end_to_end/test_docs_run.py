"""Every command that README and the documents show runs, on samples in place of what a reader has:
with the exit status that the page says, or 0, and without a traceback.

What acts on the machine stands with its reason in ``tests/architecture/page_commands.py``.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.architecture.page_commands import (
    REPOSITORY,
    Output,
    current_commands,
    elsewhere,
    outputs,
)
from tests.cluster_pages.cluster_dumps import dump, hog_deaths, write
from tests.outside.answers import RECORDINGS, unpack

GPU = "docs/incidents/gpu-device-missing/bundle"
CACHE = "docs/incidents/page-cache/bundle"
POD = "kubeflow/jupyter-ningsheng-0kctiqfg"
SAMPLES = (
    # Of the whole command the first pattern that fits, then the words behind it.
    (r"guard replay \S+ --at \S+ --config", "guard replay film.box --at 5eed0000-0002 --config"),
    (r"guard report$", "guard report --since 2026-01-01 nodes/*"),
    (r"guard replay(?: \S+)?$", "guard replay film.box"),
    (r"why --at(?: \w+)?$", "why --from node.box --at -45s"),
    (r"(?:/mnt)?/var/lib/seawall/blackbox|\bBLACKBOX\b|(?<=--from )blackbox\b", "node.box"),
    (r"blackbox (list|show)$", r"blackbox \1 node.box"),
    (r"blackbox export$", "blackbox export node.box -o export.bundle"),
    (r"blackbox export (?=--)", "blackbox export node.box "),
    (r"(?<=--at )ID\b", "1a2b3c4d-0007"),
    (r"(?<=--at )TIME\b", "-45s"),
    (r"/mnt/var/log/kern\.log", "kern.log"),
    (r"(?<=oom explain )FILE\b", "kern.log"),
    (r"oom explain$", "oom explain kern.log"),
    (r"(?<=--html )(FILE|/run/page\.html)", "incident.html"),
    (r"/etc/seawall/guard\.toml", "guard.toml"),
    (r"FOLDER/bundle", CACHE),
    (r"gpu( repair)? train/job-7", rf"gpu\1 train/job-0 --from {GPU}"),
    (r"gpu repair (--\w+)$", rf"gpu repair \1 --from {GPU}"),
    (r"(why|memory|numbers) (shop/web-0|POD|WORKLOAD)\b", rf"\1 {POD} --from {CACHE}"),
    (r"seawall capture(?: --for 60)?$", "seawall capture -o here.bundle"),
    (r"--root /host", "--root /"),
    (r"(seawall top .*(?<!--once))$", r"\1 --once"),
    (r"(seawall lab [a-z-]+)( .*)?$", r"\1 --dry-run"),
    (r"agent --last-death", "agent --last-death --blackbox node.box"),
    # Of a controller's folder, which tests/cluster_slurm makes.
    (r"(cluster (?:why|suspects) --slurm\b).*", r"\1 --help"),
    (r"(cluster (?:why|suspects|deaths|report)\b(?!.*--help).*)", r"\1 --from dump.json"),
    # They write: tests/cluster/test_action_verbs.py has a cluster for them.
    (r"(cluster (?:approve|brake|quarantine|release|rescue|undo)\b).*", r"\1 --help"),
    (r"rules show( ID)? --example", "rules show SW103 --example"),
)  # fmt: skip
CLUSTER_POLICY = """\
apiVersion: seawall.internal/v1alpha1
kind: SeawallPolicy
metadata: {name: default}
spec: {protectedNamespaces: [kube-system, ml], falsePerThousandNodeYears: 1}
"""
MAKES = re.compile(r" -o |^zcat ")
"""Of lines whose file others read."""
STATUS = {
    "seawall cluster": (2, "usage: seawall cluster VERB"),
    "seawall guard": (2, "usage: seawall guard VERB"),
}
"""What does not end with 0 as it stands: its status, and a word of the line that says why."""
PROGRAMS = {
    "seawall": 'exec "$PYTHON" -m seawall "$@"',
    "python": 'exec "$PYTHON" "$@"',
    "python3": 'exec "$PYTHON" "$@"',
    "sudo": 'exec "$@"',
    "ssh": 'shift; exec "$@"',
}


@dataclass(frozen=True)
class Ended:
    """What a command line did."""

    status: int
    text: str
    problems: str


def with_samples(command: str) -> str:
    for pattern, sample in SAMPLES:
        command = re.sub(pattern, sample, command)
    return command


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the documents take for granted."""
    folder = tmp_path_factory.mktemp("reader")
    unpack(folder)
    for name in ("docs", "src", "tests"):
        (folder / name).symlink_to(REPOSITORY / name)
    shutil.copy(RECORDINGS / "other-policy.toml", folder / "other.toml")
    shutil.copy(REPOSITORY / "packaging/guard.toml", folder / "guard.toml")
    shutil.copy(REPOSITORY / "docs/incidents/page-cache/oom.log", folder / "kern.log")
    shutil.copy(REPOSITORY / "docs/incidents/container-hangs/bundle.tar.gz", folder / "node.bundle")
    write(folder / "dump.json", dump(hog_deaths()))
    (folder / "other.yaml").write_text(CLUSTER_POLICY)
    (folder / "train.py").touch()
    (folder / "nodes/one").mkdir(parents=True)
    shutil.copy(RECORDINGS / "decisions.jsonl", folder / "nodes/one")
    (folder / "bin").mkdir()
    for name, body in PROGRAMS.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / "bin" / name).chmod(0o755)
    return folder


def typed(line: str, room: Path) -> Ended:
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=room,
        env={
            "PATH": f"{room}/bin:{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "PYTHONPATH": str(REPOSITORY / "src"),
            "COLUMNS": "80",
            "HOME": str(room),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


def lines() -> list[str]:
    """Each once, first those that make what others read."""
    run = {with_samples(each.text) for each in current_commands() if not elsewhere(each)}
    return sorted(run, key=lambda line: (not MAKES.search(line), line))


@pytest.fixture(scope="module")
def ended(room: Path) -> Iterator[Callable[[str], Ended]]:
    """What a line did; they run beside one another, for most of them wait for a second reading."""
    with ThreadPoolExecutor(6) as pool:
        makers = [line for line in lines() if MAKES.search(line)]
        done = {line: pool.submit(typed, line, room) for line in makers}
        wait(done.values())
        done |= {line: pool.submit(typed, line, room) for line in lines() if line not in done}
        yield lambda line: done[line].result()
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("line", lines())
def test_a_command_of_the_documents_runs(line: str, ended: Callable[[str], Ended]) -> None:
    if line.startswith("seawall lab ") and os.geteuid():
        pytest.skip("wants a cgroup of its own: run as root")
    status, word = STATUS.get(line, (0, ""))
    done = ended(line)
    assert done.status == status, done.problems
    assert "Traceback" not in done.text + done.problems
    assert word in done.problems
    assert done.text or status or " > " in line or " --html " in line


SHAPES = {
    ("docs/cluster.md", "CONVICTED"): (
        "seawall cluster why --from dump.json",
        (
            r"^CONVICTED: Deployment ml/trainer kills nodes: 4 nodes dead, the last ",
            r"^died      gpu-017  10:00:12Z .* silent, memory, proved$",
            r"^evidence  gpu-163: guard proved: 41.0 GiB of 64.0 GiB that was lost, uncounted,$",
            r"^by hand   of 200 nodes 4 ran it; 5 died, 4 with it: by chance 1 in 12,936,990$",
        ),
    ),
    ("docs/what-if.md", "  With the other"): (
        "seawall guard replay film.box --at 5eed0000-0002 --config other.toml",
        (
            r"^  With the other policy:$",
            r"^    \S+: [a-z ]+.* \(live: killed",
            r"^    From [\d:.]+ on this is another story: ",
        ),
    ),
}
"""A block that shows output, by its page and beginning: the command that prints such lines, and
lines that both must have."""
WORDS = {
    "docs/gpu.md": (
        "at least", "the kernel's rule", "devices.list", "written by", "written over by",
        "what it undid was written by", "that the driver manages",
        "FAILED", "means", "proof", "ends it",
    ),
}  # fmt: skip
"""Of pages whose output takes a driver: words of it, which must stand in the code."""


@pytest.mark.parametrize(
    "output", [o for o in outputs() if o.page not in WORDS], ids=lambda o: o.page
)
def test_output_is_of_the_shape_that_a_page_shows(
    output: Output, ended: Callable[[str], Ended]
) -> None:
    ((line, patterns),) = [
        shape
        for (page, start), shape in SHAPES.items()
        if page == output.page and output.text.startswith(start)
    ]
    for pattern in patterns:
        for text in (output.text, ended(line).text):
            assert re.search(pattern, text, re.MULTILINE), (pattern, text)


def test_words_of_output_that_takes_a_driver_stand_in_the_code() -> None:
    code = " ".join(path.read_text() for path in (REPOSITORY / "src/seawall").rglob("*.py"))
    for page, words in WORDS.items():
        shown = " ".join((REPOSITORY / page).read_text().split())
        for word in words:
            assert word in shown, word
            assert word in code, word
