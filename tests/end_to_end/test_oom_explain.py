"""``seawall oom explain`` on published logs, on hostile input, and on kills that really happen."""

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from tests.end_to_end import cgroups
from tests.end_to_end.explained_logs import LOGS, SCHEMA, explained, ids
from tests.end_to_end.verbs import ENVIRONMENT, Ran
from tests.end_to_end.warm_verbs import seawall

ALL = sorted(path.name for path in LOGS.glob("*.txt"))
BUNDLE = str(Path(__file__).parents[2] / "docs/incidents/gpu-node-dies/bundle")
LIMIT_BYTES = 64 << 20
HOG = "x = bytearray()\nwhile True: x += bytes(1 << 20)"


def flat(ran: Ran) -> str:
    return " ".join(ran.text.split())


@pytest.mark.parametrize("name", ALL)
def test_every_published_log_is_told(name: str) -> None:
    told = seawall("oom", "explain", "--all", str(LOGS / name)).answered().text
    wide = [line for line in told.splitlines() if len(line) > 80]
    assert not [line for line in wide if len(line.split()) > 1], wide
    assert not any("seawall-bug" in ids(one) for one in explained(name))


def test_seed_4_is_a_cgroups_kill_although_it_says_none() -> None:
    (one,) = explained("seed4-java-python.txt")
    assert one["kind"] == "memcg"
    assert "constraint-none" in ids(one)
    assert one["limit_of"]["pod_uid"] == "9df61518-c02a-11e9-9694-246e967d5d94"
    container = "2e8e56c5bf8a2e4a5c5ef824f1323d44f2194b9ffbb4336d579bd0ff435a2f98"
    assert (one["task_of"]["container_id"], one["task_of"]["runtime"]) == (container, "docker")
    told = flat(seawall("oom", "explain", str(LOGS / "seed4-java-python.txt")).answered())
    assert "python (pid 27220, 63.8 GiB) was chosen to die" in told
    assert "page cache 0 B" in told
    assert "a real need, not cache" in told
    assert "it holds most, 63.8 GiB" in told


def test_seed_3_nobody_can_be_chosen_by_size() -> None:
    first, _ = explained("memcg-v1-2.6.32-centos6.5-tdocker.txt")
    assert first["chosen_pid"] == 15947
    assert [kill["pid"] for kill in first["killed"]] == [16944]
    assert {task["points"] for task in first["tasks"]} == {1}
    assert len(first["tasks"]) == 11
    assert {"per-mille-tie", "child-sacrificed", "cut-report"} <= ids(first)
    words = next(a["text"] for a in first["anomalies"] if a["id"] == "per-mille-tie")
    assert "nobody can be chosen by size" in words
    assert "7 of that name in the table hold 60.4 MiB" in words


def test_everybody_at_minus_998_so_pause_dies() -> None:
    (one,) = explained("memcg-v1-k8s-all-adj-998-pause-killed.txt")
    assert {"adj-floor-tie", "small-return"} <= ids(one)
    assert {task["points"] for task in one["tasks"]} == {1}
    assert one["limit_bytes"] == 16 << 30
    assert one["workload"] == "pod f1c273d3-9b36-11ea-b3df-246e9693c184"
    assert one["why"] == (
        "all 21 in this table tie at 1 point, so size did not decide; data_sim (pid 58406) holds "
        "15.1 GiB."
    )


def test_what_may_be_zswap_is_no_drivers_fault() -> None:
    """(4115400 - 97082) pages less all that is printed: 811,048 pages are in no line."""
    (one,) = explained("global-6.1.1-arch1-1-doxygen.txt")
    assert one["residual_bytes"] == 811_048 * 4096
    assert one["total_pages"] == 4_115_400 - 97_082 + 25_165_820 // 4
    doxygen = next(task for task in one["tasks"] if task["pid"] == 473_206)
    assert doxygen["points"] == 2_308_581 + 5_225_427 + 60_686_336 // 4096
    assert max(t["points"] or 0 for t in one["tasks"]) == doxygen["points"]
    words = next(a["text"] for a in one["anomalies"] if a["id"] == "unaccounted-memory")
    assert "zswap's compressed pool" in words
    assert one["advice"].startswith("Give doxygen a limit")


def test_memory_of_the_kernel_is_no_processs_fault() -> None:
    (one,) = explained("global-6.10.0-rc1-alloc-profiling.txt")
    assert "kernel-memory" in ids(one)
    assert "high-order" not in ids(one), "single pages were short as well"
    assert "open files, sockets and inodes may hold it" in one["advice"]
    words = next(a["text"] for a in one["anomalies"] if a["id"] == "kernel-memory")
    assert "alloc_slab_page" not in words
    assert "xfs_inode_alloc 999 MiB" in words


def test_kernel_that_did_not_take_the_largest() -> None:
    (one,) = explained("global-5.8.0-rc4-next-20200710-dbus-killed.txt")
    words = next(a["text"] for a in one["anomalies"] if a["id"] == "choice-differs")
    assert "allocating_task" not in words, "pid 1778 asked, and 1155 was chosen"
    assert one["total_pages"] == 29_780_854
    points = {task["pid"]: task["points"] for task in one["tasks"]}
    assert points[1769] == 26_568_800 + 1_042_033 + 221_474_816 // 4096
    assert points[1155] == 1


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("sysrq-5.13.0-19-ubuntu2110.txt", {"by-hand"}),
        ("global-panic-5.15.0-rc4-gfp0.txt", {"pagefault-without-request", "panic"}),
        ("mempolicy-3.0.101-80-sles.txt", {"not-short"}),
        ("header-4.9.56-qubes-order3.txt", {"high-order", "cut-report"}),
        ("cpuset-5.8.2-docker-movable-node.txt", {"bound-to-nodes", "free-elsewhere"}),
        ("mempolicy-4.18.0-477-el8-rocky.txt", {"bound-to-nodes", "free-elsewhere"}),
        ("memcg-v2-5.0.0-rc4-oom-group-init-killed.txt", {"panic", "constraint-none"}),
    ],
)
def test_what_is_wrong_in_the_published_logs(name: str, wanted: set[str]) -> None:
    (one,) = explained(name)
    assert wanted <= ids(one)


def test_ordinary_kill_has_nothing_wrong() -> None:
    (one,) = explained("memcg-v2-5.15.158-2-pve-php-fpm.txt")
    assert one["anomalies"] == []
    assert one["limit_of"]["container_id"] == "39004"
    points = {task["pid"]: task["points"] for task in one["tasks"]}
    assert max(p or 0 for p in points.values()) == points[3_902_942] == 3_201_932


# --- which reports, and from where -----------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven reports in one log; the same kill seven times would be one that was read again."""
    path = tmp_path_factory.mktemp("logs") / "kern.log"
    body = (LOGS / "global-6.1.1-arch1-1-doxygen.txt").read_bytes()
    path.write_bytes(
        b"".join(body.replace(b"file-rss:4kB", b"file-rss:%dkB" % n) for n in range(7))
    )
    return path


def test_many_are_episodes_and_the_last_whole(many: Path) -> None:
    told = seawall("oom", "explain", str(many)).answered().text
    assert "7 calls of the OOM killer, 7 killed, in 7 episodes" in told  # without a time each
    assert told.count("1 kill of the machine, 28.8 GiB came back: doxygen") == 5
    assert told.count("What to do:") == 1
    assert len(told.splitlines()) <= 24
    assert "OOM report 7 of 7" in told
    assert "7 OOM reports in" in told


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (("--last", "2"), [6, 7]),
        (("--report", "3"), [3]),
        (("--all",), [1, 2, 3, 4, 5, 6, 7]),
        ((), [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_reports_that_are_asked_for(many: Path, words: tuple[str, ...], numbers: list[int]) -> None:
    page = seawall("oom", "explain", "--json", str(many), *words).answered().document
    assert [one["number"] for one in page["reports"]] == numbers
    assert page["reports_found"] == 7
    if words:
        told = seawall("oom", "explain", str(many), *words).answered().text
        assert told.count("What to do:") == len(numbers)


def test_report_that_is_not_there_is_the_callers_mistake(many: Path) -> None:
    ran = seawall("oom", "explain", str(many), "--report", "9")
    assert ran.status == 2
    assert b"--report 9: the log has 7" in ran.err


def test_stdin_and_gzip_say_the_same(many: Path, tmp_path: Path) -> None:
    zipped = tmp_path / "kern.log.gz"
    zipped.write_bytes(gzip.compress(many.read_bytes()))
    plain = seawall("oom", "explain", "--json", str(many)).answered().document["reports"]
    assert seawall("oom", "explain", "--json", str(zipped)).answered().document["reports"] == plain
    for words in ((), ("-",)):
        piped = subprocess.run(
            [sys.executable, "-m", "seawall", "oom", "explain", "--json", *words],
            input=many.read_bytes(), capture_output=True, env=ENVIRONMENT, check=True, timeout=60,
        )  # fmt: skip
        assert json.loads(piped.stdout)["reports"] == plain


def test_gzip_that_breaks_off_is_told_as_far_as_it_goes(many: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(many.read_bytes())[:-2000])
    page = seawall("oom", "explain", "--json", str(cut)).answered().document
    assert 1 <= len(page["reports"]) <= 7
    assert any(row["what"].startswith("the rest of") for row in page["could_not_see"])


def test_log_files_of_a_tree(many: Path, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "var/log").mkdir(parents=True)
    (tmp_path / "var/log/messages").write_bytes(many.read_bytes())
    page = seawall("oom", "explain", "--json", "--root", str(tmp_path)).answered().document
    assert len(page["reports"]) == 7
    assert page["log"] == "/var/log/messages"


def test_kernel_and_page_size_can_be_told() -> None:
    name = "memcg-v1-k8s-all-adj-998-pause-killed.txt"
    (one,) = explained(name, "--kernel", "6.1", "--page-size", "65536")
    assert one["kernel"] == "6.1"
    assert one["page_size"] == 65_536
    assert "adj-floor-tie" not in ids(one)


# --- unusable and hostile input --------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"May  3 10:00:00 n systemd[1]: nothing here\n" * 12])
def test_log_without_a_report(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "quiet.log"
    path.write_bytes(body)
    told = flat(seawall("oom", "explain", str(path)).answered())
    count = len(body.splitlines())
    assert f"No OOM report in {count} lines. Looked for 'invoked oom-killer'" in told
    page = seawall("oom", "explain", "--json", str(path)).answered().document
    assert page["reports"] == []
    jsonschema.validate(page, SCHEMA)


@pytest.mark.parametrize(
    "body",
    [b"\n" * 12, b"nothing here\n" * 12, bytes(range(256)) * 4096 + b"\0" * (3 << 20)],
    ids=["blank lines", "prose", "binary"],
)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_is_like_no_log_is_refused(tmp_path: Path, body: bytes, options: list[str]) -> None:
    path = tmp_path / "core"
    path.write_bytes(body)
    ran = seawall("oom", "explain", *options, str(path))
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err.count(b"\n") == 1
    assert b"nothing like a kernel log" in ran.err


def test_names_that_would_steer_the_terminal(tmp_path: Path) -> None:
    body = (LOGS / "memcg-v2-5.2.0-rc2-constraint-none-bug.txt").read_bytes()
    path = tmp_path / "hostile.log"
    path.write_bytes(body.replace(b"stress", b"\x1b[2J\x07\xff"))
    ran = seawall("oom", "explain", str(path)).answered()
    assert not any(byte < 32 and byte != 10 for byte in ran.out)
    assert "\\x1b[2J" in ran.text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("/nowhere/kern.log",), "No such file"),
        (("/",), "a folder; expected a log"),
        (("-", "--live"), "--live and FILE"),
        (("-", "--from", "x"), "x: cannot be read as a bundle: No such file"),
        (("-", "--from", BUNDLE), f"--from {BUNDLE} and FILE: give one of them"),
        (("--follow", "--root", "/tmp"), "--follow is about this machine"),
        (("-", "--kernel", "potato"), "potato"),
        (("-", "--page-size", "12"), "12"),
        (("-", "--last", "0"), "'0' is not a number"),
        (("-", "--last", "2", "--all"), "not allowed with"),
    ],
)
def test_unusable_words_are_told_in_a_line(words: tuple[str, ...], told: str) -> None:
    ran = seawall("oom", "explain", *words)
    assert ran.status == 2
    assert told in ran.err.decode()
    assert b"Traceback" not in ran.err


@pytest.mark.parametrize(
    ("magic", "told"),
    [(b"\xfd7zXZ\0", "xzcat"), (b"(\xb5/\xfd", "zstdcat"), (b"LPKSHHRH", "journalctl --file")],
)
def test_files_that_another_tool_opens(tmp_path: Path, magic: bytes, told: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(magic + b"x" * 100)
    ran = seawall("oom", "explain", str(path))
    assert ran.status == 2
    assert told in ran.err.decode()


def test_oom_alone_prints_its_usage() -> None:
    ran = seawall("oom")
    assert ran.status == 2
    assert b"usage: seawall oom" in ran.err
    assert "predict" in seawall("oom", "--help").answered().text


# --- kills that really happen -----------------------------------------------------------


@contextlib.contextmanager
def limited() -> Iterator[Path]:
    """A memory cgroup with a limit of 64 MiB, without swap, away from everything else."""
    home = cgroups.V1 if (cgroups.V1 / "memory.usage_in_bytes").exists() else cgroups.V2
    path = home / f"seawall-oom-{os.getpid()}"
    path.mkdir()
    try:
        name = "memory.limit_in_bytes" if home == cgroups.V1 else "memory.max"
        (path / name).write_text(str(LIMIT_BYTES))
        assert int((path / name).read_text()) == LIMIT_BYTES
        for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            with contextlib.suppress(OSError):
                (path / swap).write_text(str(LIMIT_BYTES) if "memsw" in swap else "0")
        yield path
    finally:
        deadline = time.monotonic() + 10
        while path.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                path.rmdir()
            time.sleep(0.05)


def kill_a_hog(group: Path) -> int:
    """A process that takes more than its cgroup may; its pid, once the kernel has killed it."""
    script = f"echo $$ > {group}/cgroup.procs && exec {sys.executable} -c '{HOG}'"
    hog = subprocess.Popen(["sh", "-c", script], stderr=subprocess.DEVNULL)
    assert hog.wait(30) == -signal.SIGKILL
    return hog.pid


def unreadable() -> str | None:
    if why := cgroups.missing():
        return why
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        return f"/dev/kmsg: {error.strerror}: run as root, with the device"
    return None


@pytest.mark.system
def test_kill_of_a_moment_ago_is_explained_live() -> None:
    if why := unreadable():
        pytest.skip(why)
    with limited() as group:
        pid = kill_a_hog(group)
        page = seawall("oom", "explain", "--live", "--json", "--last", "5").answered().document
    jsonschema.validate(page, SCHEMA)
    assert page["log"] == "/dev/kmsg"
    one = next(one for one in page["reports"] if one["chosen_pid"] == pid)
    assert one["kind"] == "memcg"
    assert one["memcg"].endswith(f"/{group.name}")
    assert one["limit_bytes"] == LIMIT_BYTES
    assert one["kernel"] == os.uname().release
    assert one["page_size"] == os.sysconf("SC_PAGE_SIZE")
    (task,) = one["tasks"]
    assert (task["pid"], task["points"] > 0) == (pid, True)
    (kill,) = one["killed"]
    # Charges are made in batches, and rss is counted ahead of them.
    assert 0.5 * LIMIT_BYTES < kill["anon_rss_bytes"] < 1.5 * LIMIT_BYTES
    assert not ids(one) & {"choice-differs", "adj-floor-tie", "cut-report"}


@pytest.mark.system
def test_follow_tells_a_kill_when_it_comes(tmp_path: Path) -> None:
    if why := unreadable():
        pytest.skip(why)
    command = [sys.executable, "-m", "seawall", "oom", "explain", "--follow"]
    told_here = tmp_path / "out"
    with limited() as group, open(told_here, "wb") as out, subprocess.Popen(
        command, stdout=out, stderr=subprocess.PIPE, env=ENVIRONMENT,
        # A shell's background job ignores SIGINT, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads
    ) as follower:  # fmt: skip
        assert follower.stderr
        assert b"following" in follower.stderr.readline()
        pid = kill_a_hog(group)
        until = time.monotonic() + 30
        while time.monotonic() < until and b"limit of 64.0 MiB" not in told_here.read_bytes():
            time.sleep(0.2)
        time.sleep(1)  # the rest of what it tells
        follower.send_signal(signal.SIGINT)
        _, err = follower.communicate(timeout=20)
    told = " ".join(told_here.read_text().split())
    assert f"(pid {pid}, " in told
    assert f"{group.name} reached its limit of 64.0 MiB" in told
    assert b"Traceback" not in err
