"""``seawall oom explain`` of a log that is no OOM report says what it is."""

import json
from pathlib import Path

import pytest
from tests.end_to_end.warm_verbs import seawall

FILES = Path(__file__).parents[1] / "accounts" / "files" / "recent"
REPORT = (
    b"[  100.000000] hog invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, "
    b"oom_score_adj=0\n"
    b"[  100.100000] Out of memory: Killed process 42 (hog) total-vm:1000kB, anon-rss:900kB, "
    b"file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0\n"
)


def said_of(path: Path, *options: str) -> str:
    return seawall("oom", "explain", str(path), *options).answered().text


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.txt")))
def test_a_piece_is_not_called_no_report(name: str) -> None:
    text = said_of(FILES / f"{name}.txt")
    assert "Looked for 'invoked oom-killer'" not in text
    assert all(len(line) <= 80 for line in text.splitlines() if " " in line.strip())
    document = json.loads(said_of(FILES / f"{name}.txt", "--json"))
    assert document["other_events"] or document["reports"]


def test_a_log_that_holds_both_shows_both(tmp_path: Path) -> None:
    log = tmp_path / "both.log"
    log.write_bytes(REPORT + (FILES / "hung-same-two-tasks.txt").read_bytes())
    text = said_of(log)
    assert "hog" in text
    assert "2 tasks hung for at least 368 s" in text
    assert "1 OOM report in " in text


def test_an_escape_in_a_name_is_written_out(tmp_path: Path) -> None:
    log = tmp_path / "hostile.log"
    log.write_bytes(
        b"Jul 18 08:23:17 n earlyoom[1]: sending SIGTERM to process 5 uid 0 "
        b'"\x1b[2Jx": badness 711, VmRSS 52562 MiB\n'
    )
    text = said_of(log)
    assert "\x1b" not in text
    assert "earlyoom sent SIGTERM" in text


def test_earlyoom_says_that_one_of_two_ended(tmp_path: Path) -> None:
    log = tmp_path / "earlyoom.log"
    head = "Jun 03 09:14:22 n earlyoom[812]: "
    send = 'sending SIGTERM to process {} uid 1000 "{}": oom_score 861, VmRSS 2211 MiB'
    lines = [send.format(40121, "cc1plus"), "process 40121 exited after 0.6 seconds"]
    log.write_text("\n".join(head + line for line in lines))
    text = said_of(log)
    assert "it ended 0.6 s later" in text
    assert "whether it ended" not in text
    log.write_text("\n".join(head + line for line in [*lines, send.format(5, "ld")]))
    assert "whether it ended is not in the lines" in said_of(log)


POD = b"""    State:          Running
      Started:      Fri, 14 Feb 2025 10:00:11 +0100
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Fri, 14 Feb 2025 10:00:10 +0100
    Ready:          True
    Restart Count:  7
    Limits:
      memory:  200Mi
    Requests:
      memory:  100Mi
"""


def test_a_described_pod(tmp_path: Path) -> None:
    log = tmp_path / "pod.txt"
    log.write_bytes(POD)
    text = said_of(log)
    assert "a container was OOM-killed, says the kubelet, its memory limit is 200Mi" in text
    assert "restarts so far: 7" in text
    assert "100Mi" not in text
    log.write_bytes(POD.replace(b"OOMKilled", b"Error"))
    assert seawall("oom", "explain", str(log)).status == 2


def test_pods_in_a_list(tmp_path: Path) -> None:
    log = tmp_path / "pods.txt"
    log.write_bytes(b"NAME READY STATUS RESTARTS AGE\nweb-7 0/1 OOMKilled 3 (2m ago) 10m\n")
    text = said_of(log)
    assert "a container of web-7 was OOM-killed" in text
    assert "restarts so far: 3" in text


def test_the_size_of_a_candidate_is_not_that_of_the_killed(tmp_path: Path) -> None:
    log = tmp_path / "oomd.log"
    head = "avril 16 21:08:50 systemd-oomd[93234]: "
    lines = [
        "Considered 97 cgroups for killing, top candidates were:",
        "        Path: /a/slack.scope",
        "                Current Memory Usage: 388.4M",
        "Killed /a/tmux.scope due to memory used (79) / total (80) and swap used (79)",
    ]
    log.write_text("\n".join(head + line for line in lines))
    text = said_of(log)
    assert "systemd-oomd killed tmux" in text
    assert "388.4M" not in text
    log.write_text("\n".join(head + line for line in lines).replace("tmux", "slack"))
    assert "it used 388.4M, the first of 97 candidates" in said_of(log)
