"""The kernel's lines in envelopes: events, JSON of any make, YAML, Talos, relays, quotes."""

import json

import pytest
from tests.readings.oom_logs import case, only_report, reports_in

from seawall.readings.oom_log.likeness import is_of_a_log
from seawall.readings.oom_log.oom_report import Choice, Kill
from seawall.readings.oom_log.parser import read_reports
from seawall.readings.oom_log.tally import LogTally

KILLED = (
    "Memory cgroup out of memory: Killed process 3504804 (kubectl) total-vm:753508kB, "
    "anon-rss:58776kB, file-rss:29400kB, shmem-rss:0kB, UID:0 pgtables:288kB oom_score_adj:999"
)
KILL = Kill(
    3504804, "kubectl", 0, 753508 << 10, 58776 << 10, 29400 << 10, 0, 288 << 10, 999
)  # fmt: skip


def test_an_event_in_json_that_is_cut() -> None:
    report = only_report(case("event-json-npd.json"))
    assert (report.kind, report.at) == ("memcg", "2023-06-13T14:35:38Z")
    assert report.kills == (KILL._replace(line=25),)


def test_describe_node() -> None:
    report = only_report(case("describe-node-gke.txt"))
    assert (report.kind, report.choice) == ("memcg", Choice(1371, "node", 2081, 1))
    assert [(kill.pid, kill.anon_rss_bytes) for kill in report.kills] == [(1371, 201844 << 10)]


def test_talos() -> None:
    report = only_report(case("talos-apid.txt"))
    assert (report.kind, report.kernel, report.invoker_pid) == ("memcg", "6.12.27-talos", 2278)
    assert report.memory
    assert (report.memory.usage_bytes, report.memory.failcnt) == (40964 << 10, 172)


def test_nine_calls_in_a_second_are_nine() -> None:
    assert len(reports_in(case("kswapd-nine-times.txt"))) == 9


@pytest.mark.parametrize("name", ["mail-wrapped-i686.txt", "mail-wrapped-i686.eml"])
def test_a_mail_that_was_wrapped_twice(name: str) -> None:
    first, second = reports_in(case(name))
    (kill,) = first.kills
    assert kill._replace(line=0) == Kill(
        1669, "xdg-desktop-por", 1000, 105068 << 10, 9792 << 10, 10972 << 10, 0, 136 << 10, 200
    )
    assert (second.invoker_comm, second.invoker_pid, second.order) == ("systemd", 1413, 0)
    assert (second.gfp_flags, second.invoker_oom_score_adj) == (("GFP_KERNEL",), 100)
    assert second.kernel == "6.3.0-rc1-x86-32-debug+"
    assert "out_of_memory" in {frame.function for frame in second.trace}


def test_what_follows_a_whole_kill_is_not_joined_to_it() -> None:
    log = KILLED.encode() + b"\n42 is what I see\nUID: nothing\ntotal-vm is large\n"
    assert only_report(log).kills[0]._replace(line=0) == KILL._replace(line=0)


def test_an_equals_sign_is_left_alone_outside_quoted_printable() -> None:
    log = (
        b"Content-Transfer-Encoding: quoted-printable\n\ngfp=3D\n"
        b"From x\nContent-Transfer-Encoding: 8bit\n\n"
        b"a=0B invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    )
    assert only_report(log).invoker_comm == "a=0B"


def test_whose_limit_it_was_behind_the_kill() -> None:
    (one,) = reports_in(case("openshift-allocatable.txt"))
    assert (one.kills[0].pid, one.oom_memcg) == (5806, "/kubepods.slice")
    assert one.task_memcg
    assert "pod6ba0af16" in one.task_memcg


def test_the_next_kills_limit_is_not_that_of_the_last() -> None:
    kill = "May 1 10:00:0{} n kernel: Memory cgroup out of memory: Killed process {} (a) total-vm:9kB, anon-rss:8kB, file-rss:0kB"  # noqa: E501
    task = "May 1 10:00:0{} n kernel: Task in /b killed as a result of limit of /b"
    log = [kill.format(1, 7), task.format(1), kill.format(1, 8)]
    first, second = reports_in("\n".join(log).encode())
    assert (first.oom_memcg, second.oom_memcg) == (None, "/b")
    log = [kill.format(1, 7), task.format(2)]
    assert reports_in("\n".join(log).encode())[0].oom_memcg is None


ESCAPED = json.dumps(KILLED)
ENVELOPES = [
    '{"insertId":"x","jsonPayload":{"MESSAGE":' + ESCAPED + '},"timestamp":"2023-06-13T14:35:38Z"}',
    '{"events":[{"timestamp":1686666938000,"message":' + ESCAPED + ',"ingestionTime":1}]}',
    '{"textPayload":' + ESCAPED + "}",
    '{"streams":[{"stream":{"job":"k"},"values":[["1686666938000000000",' + ESCAPED + "]]}]}",
    '{"line":' + ESCAPED + ',"timestamp":"1686666938000000000"}',
    '{"log":"' + KILLED + '\\n","stream":"stderr","time":"2023-06-13T14:35:38Z"}',
    '{"@timestamp":"2023-06-13T14:35:38Z","host":"n","msg":' + ESCAPED + ',"rawmsg":' + ESCAPED + "}",  # noqa: E501
    '{"result":{"_raw":"Jun 13 14:35:38 n kernel: ' + KILLED + '"}}',
    '{\n  "firstTimestamp": "2023-06-13T14:35:38Z",\n  "message": ' + ESCAPED + ',\n  "me',
    "  lastTimestamp: \"2023-06-13T14:35:38Z\"\n  message: '" + KILLED + "'\n  metadata:",
    '"2023-06-13T14:35:38.000Z","n1","' + KILLED + '","kern"',
    "2m3s   Warning   OOMKilling   node/n   " + KILLED,
    "[pod/npd-x/npd] " + KILLED,
    "2023-06-13T14:35:38.123456789Z stderr F " + KILLED,
    "172.20.0.2: kern:    info: [2023-06-13T14:35:38.1Z]: " + KILLED,
    "<4>1 2023-06-13T14:35:38.1Z n1 kernel - - - " + KILLED,
    "Jun 13 14:35:39 relay Jun 13 14:35:38 n1 kernel: [ 12.345678] " + KILLED,
    "/var/log/messages:12:Jun 13 14:35:38 n1 kernel: " + KILLED,
    "web_1  | " + KILLED,
    "<p>[   12.345678] " + KILLED + "</p>",
    "Jun 13 14:35:38 n1 node-problem-detector[9]: Message: " + KILLED,
    "PRIORITY=4\n_TRANSPORT=kernel\nMESSAGE=" + KILLED,
]  # fmt: skip


@pytest.mark.parametrize("text", ENVELOPES)
def test_one_kill_in_every_envelope(text: str) -> None:
    tally = LogTally()
    [report] = read_reports([line.encode() for line in text.split("\n")], tally)
    assert [kill._replace(line=0) for kill in report.kills] == [KILL]
    assert report.kind == "memcg"
    assert tally.not_understood == 0


def test_what_was_not_understood_is_counted() -> None:
    tally = LogTally()
    lines = [b"x: KILLED PROCESS oom-kill 1\n", b"usb\n", b"something ran out of memory\n"]
    lines.append(b"May 3 10:00:00 n app[1]: CUDA out of memory. Tried to allocate 2 GiB\n")
    assert list(read_reports(lines, tally)) == []
    assert (tally.not_understood, [line.number for line in tally.examples]) == (2, [1, 3])


def test_a_kill_that_another_program_repeats_is_counted_once() -> None:
    tally = LogTally()
    lines = [
        f"Jun 13 14:35:38 n1 kernel: {KILLED}".encode(),
        f"Jun 13 14:35:39 n1 npd[9]: Message: {KILLED}".encode(),
    ]
    assert len(list(read_reports(lines, tally))) == 1
    assert (tally.repeats, tally.not_understood) == (1, 0)


@pytest.mark.parametrize(
    "line",
    [b"[   12.345678] usb 1-1: new device", b"May  3 10:00:00 n systemd[1]: x",
     b"6,1,2,-;x", b"Linux version 6.1", b'{"message":"x"}', b"I0613 14:35:38.1 x"],
)  # fmt: skip
def test_lines_of_a_log(line: bytes) -> None:
    assert is_of_a_log(line)


@pytest.mark.parametrize("line", [b"<!DOCTYPE html>", b"\x89PNG\r\n", b"The sun is high.", b""])
def test_lines_of_no_log(line: bytes) -> None:
    assert not is_of_a_log(line)


@pytest.mark.parametrize(
    ("row", "at"),
    [
        ("  Warning  PodOOMKilling  2m    kernel-monitor, node-1  ", "2m ago"),
        ("  Warning  OOMKilling  3h12m (x4 over 5h)  kernel-monitor  ", "3h12m ago"),
        ("2m         Warning   OOMKilling   node/gke-a   ", "2m ago"),
        ("default   47s   Warning   OOMKilling   node/gke-a   ", "47s ago"),
        ("the 2m node  ", None),
    ],
)
def test_age_of_an_event_that_kubectl_prints(row: str, at: str | None) -> None:
    words = (
        "Memory cgroup out of memory: Kill process 25169 (hyperkube) score 2109 or sacrifice child"
    )
    assert only_report(f"{row}{words}\n".encode()).at == at
