"""What is no report is none, what is one stays whole: prose, names, records, hosts, the reaper."""

import json

import pytest
from tests.readings.oom_logs import expected, log, only_report, reports_in, wanted, without_lines
from tests.readings.test_oom_log_forms import GLOBAL, MEMCG, given, kernel_lines, said

from seawall.readings.oom_log.parser import ReportReader

SIZES = "total-vm:1000kB, anon-rss:900kB, file-rss:8kB, shmem-rss:0kB"
HEADER = "invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"


@pytest.mark.parametrize(
    "line",
    [
        "Killed process 1234 (foo) is what the kernel prints",
        "Out of memory: Killed process 1234 (foo) is what the kernel prints",
        "2026-03-12 13:01:10 Killed process 1234 (foo), said the operator",
        "Mar 12 13:01:10 host myapp[12]: I saw 'php invoked oom-killer: gfp_mask=0x0, order=0'",
        "Mar 12 13:01:10 myapp: Killed process 7 (x) total-vm:1kB, anon-rss:1kB",
        "[   12.345678] myapp[12]: I saw php invoked oom-killer: gfp_mask=0x0, order=0",
        "I saw 'php invoked oom-killer: gfp_mask=0x0, order=0' yesterday",
        "this name is too long invoked oom-killer: gfp_mask=0x0, order=0",
        '{"log":"Killed process 1234 (foo) is what the kernel prints\\n","stream":"stdout"}',
        "_TRANSPORT=syslog\nMESSAGE=php invoked oom-killer: gfp_mask=0x0, order=0",
    ],
)
def test_words_about_a_kill_are_no_report(line: str) -> None:
    assert reports_in(f"{line}\n".encode()) == []


@pytest.mark.parametrize(
    "name", ["tmux: client", "runc:[2:INIT]", "kworker/u8:3", "Isolated Web Co", "a'b", "é" * 7]
)
def test_names_that_are_odd_but_real(name: str) -> None:
    assert only_report(f"{name} {HEADER}\n".encode()).invoker_comm == name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"Out of memory: Killed process 200 (db) {SIZES}", True),
        ("[ 9.5] Out of memory: Kill process 200 (db) score 3 or sacrifice child", True),
        (f"Killed process 200 (db) {SIZES}", False),
        (f"Memory cgroup out of memory: Killed process 200 (db) {SIZES}", False),
    ],
)
def test_whether_the_machine_was_out_of_memory(text: str, *, says: bool) -> None:
    assert only_report(text.encode()).says_out_of_memory is says


def test_the_reaper_gives_up() -> None:
    kill = f"[   10.000000] Out of memory: Killed process 200 (db) {SIZES}\n"
    line = "[   11.000000] oom_reaper: unable to reap pid:{} (d) b)\n"
    report = only_report((kill + line.format(200)).encode())
    assert (report.unable_to_reap, report.reaped, report.is_cut) == ((200,), (), True)
    assert report.last_line == 2
    assert only_report((kill + line.format(201)).encode()).unable_to_reap == (201,)
    far = line.format(201).replace("11.000000", "911.000000")
    assert only_report((kill + far).encode()).unable_to_reap == ()


def test_the_reaper_took_one_whose_kill_line_is_missing() -> None:
    whole = log(MEMCG)
    more = b"[Di Aug 12 03:54:04 2025] oom_reaper: reaped process 77 (x), now anon-rss:0kB, "
    report = only_report(whole + more + b"file-rss:0kB, shmem-rss:4kB\n")
    assert [(one.pid, one.comm, one.shmem_rss_bytes) for one in report.reaped][-1] == (
        77,
        "x",
        4096,
    )
    assert report.is_cut
    assert not only_report(whole).is_cut


@pytest.mark.parametrize("name", ["[1.0] x", "[ 12.345678] x", "a kernel: b", "x [1.5]"])
@pytest.mark.parametrize(
    "prefix", ["", "Mar 12 13:01:10 h kernel: ", "[   12.500000] ", "<4>[1.5] "]
)
def test_a_name_that_looks_like_a_prefix(name: str, prefix: str) -> None:
    report = only_report(f"{prefix}Out of memory: Killed process 200 ({name}) {SIZES}\n".encode())
    assert [(kill.pid, kill.comm) for kill in report.kills] == [(200, name)]


@pytest.mark.parametrize("prefix", ["", "Mar 12 13:01:10 h kernel: ", "[   12.500000] "])
def test_an_invoker_that_looks_like_a_stamp(prefix: str) -> None:
    name = "[ 12.345678] x"
    cpu = f"CPU: 0 PID: 200 Comm: {name} Not tainted 6.1.0 #1"
    report = only_report(f"{prefix}{name} {HEADER}\n{prefix}{cpu}\n".encode())
    assert (report.invoker_comm, report.invoker_pid, report.kernel) == (name, 200, "6.1.0")


def pretty(text: str) -> str:
    fields = {"_TRANSPORT": "kernel", "_HOSTNAME": "n", "MESSAGE": text, "PRIORITY": "4"}
    return "{\n" + ",\n".join(f'\t"{k}" : {json.dumps(v)}' for k, v in fields.items()) + "\n}\n"


def export(text: str) -> str:
    size = len(text.encode()).to_bytes(8, "little").decode("utf-8", "surrogateescape")
    message = f"MESSAGE\n{size}{text}\n" if "\n" in text else f"MESSAGE={text}\n"
    return f"__CURSOR=s=1;i=2\n_TRANSPORT=kernel\n{message}_PID=1\n\n"


def record(text: str) -> str:
    return json.dumps({"_TRANSPORT": "kernel", "MESSAGE": text})


FORMS = {
    "json-pretty": lambda texts: "".join(map(pretty, texts)),
    "json-sse": lambda texts: "".join(f"data: {record(text)}\n\n" for text in texts),
    "json-seq": lambda texts: "".join(f"\x1e{record(text)}\n" for text in texts),
    "array": lambda texts: "[" + ",\n".join(map(record, texts)) + "]\n",
    "commas first": lambda texts: "[" + "\n,".join(map(record, texts)) + "\n]\n",
    "bytes with blanks": lambda texts: "".join(
        json.dumps({"MESSAGE": list(text.encode())}) + "\n" for text in texts
    ),
    "export": lambda texts: "".join(map(export, texts)),
    "verbose": lambda texts: "".join(
        f"Tue 2025-08-12 03:54:03 CEST [s=1;i=2]\n    _TRANSPORT=kernel\n    MESSAGE={text}\n"
        for text in texts
    ),
    "dmesg -d": lambda texts: "".join(
        f"[{1000 + n * 0.01:12.6f} <    0.000012>] {text}\n" for n, text in enumerate(texts)
    ),
    "dmesg -J": lambda texts: '{\n   "dmesg": [\n      {\n' + "      },{\n".join(
        f'         "pri": 4,\n         "time": {99 + n / 100:12.6f},\n'
        f'         "msg": {json.dumps(text)}\n'
        for n, text in enumerate(texts)
    ),
    "docker": lambda texts: "".join(
        json.dumps({"log": f"[{99 + n * 0.01:12.6f}] {text}\n", "stream": "stdout"}) + "\n"
        for n, text in enumerate(texts)
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [GLOBAL, MEMCG])
def test_form(form: str, name: str) -> None:
    assert said(FORMS[form](kernel_lines(name))) == given(name)


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_utf_16(coding: str) -> None:
    data = ("\ufeff" + "\r\n".join(kernel_lines(MEMCG)) + "\r\n").encode(coding)
    assert said(data) == given(MEMCG)
    reader = ReportReader()
    found = [report for byte in data for report in reader.feed(bytes([byte]))] + reader.settle()
    assert [report.oom_memcg for report in found] == ["/lxc/39004"]
    assert reports_in(data[2:]) == []


@pytest.mark.parametrize("hosts", [("node-1", "node-2"), ("a", "b.example")])
def test_two_hosts_line_by_line_in_turn(hosts: tuple[str, str]) -> None:
    lines = [
        [f"May 30 14:08:25 {host} kernel: {part}\n" for part in "\n".join(told).split("\n")]
        for host, told in zip(hosts, (kernel_lines(GLOBAL), kernel_lines(MEMCG)), strict=True)
    ]
    mixed = [line for pair in zip(*lines, strict=False) for line in pair]
    mixed += lines[0][len(lines[1]) :] + lines[1][len(lines[0]) :]
    found = [without_lines(report) for report in reports_in("".join(mixed).encode())]
    for report, name in zip(found, (GLOBAL, MEMCG), strict=True):
        assert report == wanted(expected(name)[0]) | {"at": "May 30 14:08:25"}
