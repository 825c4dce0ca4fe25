"""Reports of other tools in those tools' layouts: node, kernel, date and the kernel's log."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.warm_verbs import seawall

from seawall.host.live import LiveHost
from seawall.host.reports import must_gather, nvidia_bug_report, sos
from seawall.host.reports.report_host import SupportReport, unix_seconds_of

ROOT = Path(__file__).parents[2]
MEMINFO = (
    "MemTotal: 16301240 kB\nMemFree: 801240 kB\nMemAvailable: 9301240 kB\nCached: 8000000 kB\n"
)
STAT = "cpu  1 2 3 4\nbtime 1611000000\n"
TAKEN = 1611057600 + 3 * 3600  # 2021-01-19 15:00:00 UTC
KILL = (
    "[57000.100000] stress invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, "
    "oom_score_adj=0\n"
    "[57000.200000] Out of memory: Killed process 4242 (stress) total-vm:8123456kB, "
    "anon-rss:8000000kB, file-rss:4kB, shmem-rss:0kB, UID:0 pgtables:15700kB oom_score_adj:0\n"
)
UNAME = "Linux node-7 4.18.0-240.el8.x86_64 #1 SMP Wed Sep 23 05:13:10 EDT 2020 x86_64 x86_64 "
UNAME += "x86_64 GNU/Linux\n"


def tree(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def sos_files(home: str, date_home: str) -> dict[str, str | bytes]:
    return {
        f"sos_commands/{home}/hostname": "node-7.example.com\n",
        f"sos_commands/{date_home}/date": "Tue Jan 19 15:00:00 UTC 2021\n",
        "sos_commands/kernel/uname_-a": UNAME,
        "sos_commands/kernel/dmesg": KILL,
        "sos_commands/logs/journalctl_--disk-usage": "Archived and active journals take up 8.0M\n",
        "sos_commands/logs/journalctl_--no-pager_--boot": "Jan 19 14:00:00 node-7 kernel: x\n",
        "sos_commands/logs/journalctl_--no-pager_--boot_-1": "Jan 01 14:00:00 node-7 kernel: x\n",
        "proc/meminfo": MEMINFO,
        "proc/stat": STAT,
        "version.txt": "sosreport: 4.0\n",
    }


def report_of(module: Any, folder: Path) -> SupportReport | None:
    found = module.report_of(LiveHost(str(folder)))
    assert found is None or isinstance(found, SupportReport)
    return found


def run(*words: str) -> Any:
    ran = seawall(*words).answered()
    return ran.document if "--json" in words else ran.text


@pytest.mark.parametrize("homes", [("host", "date"), ("general", "general")], ids=["4", "3"])
def test_sos_report(tmp_path: Path, homes: tuple[str, str]) -> None:
    folder = tree(tmp_path, sos_files(*homes))
    found = report_of(sos, folder)
    assert found is not None
    assert (found.node_name, found.release, found.machine) == (
        "node-7.example.com", "4.18.0-240.el8.x86_64", "x86_64",
    )  # fmt: skip
    assert found.taken_at_unix_seconds == 1611068400
    assert found.kernel_logs == (
        "/sos_commands/kernel/dmesg", "/sos_commands/logs/journalctl_--no-pager_--boot",
    )  # fmt: skip
    page = run("memory", "--json", "--root", str(folder))
    assert page["host"]["node"] == "node-7.example.com"
    assert page["taken_at"] == "2021-01-19T15:00:00Z", "not when the host was booted"
    explained = run("oom", "explain", "--json", "--root", str(folder))
    [report] = explained["reports"]
    assert report["verdict"]
    assert "stress" in json.dumps(report)
    text = run("why", "--whole", "--root", str(folder))
    assert "node-7.example.com" in text
    assert "4.18.0-240.el8.x86_64" in text
    assert "unknown node" not in text


def test_what_a_sos_report_does_not_hold_is_not_absent_from_the_kernel(tmp_path: Path) -> None:
    page = run("why", "--json", "--root", str(tree(tmp_path, sos_files("host", "date"))))
    assert any("the report does not hold it" in row["why"] for row in page["could_not_see"])


def test_sos_date_of_another_zone_is_when_it_was_written(tmp_path: Path) -> None:
    files = sos_files("host", "date")
    files["sos_commands/date/date"] = "Tue Jan 19 16:00:00 CET 2021\n"
    folder = tree(tmp_path, files)
    os.utime(folder / "sos_commands/date/date", (TAKEN, TAKEN))
    found = report_of(sos, folder)
    assert found is not None
    assert found.taken_at_unix_seconds == TAKEN
    (folder / "sos_commands/date/date_--utc").write_text("Tue Jan 19 15:00:01 UTC 2021\n")
    found = report_of(sos, folder)
    assert found is not None
    assert found.taken_at_unix_seconds == 1611068401, "in UTC it is taken at its word"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Tue Jan 19 15:00:00 UTC 2021", 1611068400),
        ("Tue 19 Jan 2021 03:00:00 PM UTC", 1611068400),
        ("2021-01-19 15:00:00.123 +0000 UTC m=+0.1", 1611068400),
        ("Tue Jan 19 15:00:00 CET 2021", None),
        ("Tue Jan 99 15:00:00 UTC 2021", None),
        ("15:00:00 up 1:03, 0 users UTC", None),
        ("\x1b[31m", None),
    ],
)
def test_date(text: str, seconds: float | None) -> None:
    assert unix_seconds_of(text) == seconds


NODE = """apiVersion: v1
kind: Node
metadata:
  name: worker-0
status:
  nodeInfo:
    architecture: amd64
    kernelVersion: 4.18.0-193.el8.x86_64
"""


@pytest.mark.parametrize("home", ["", "quay-io-openshift-release-dev-ocp-v4-0-art-dev-sha256-1f/"])
def test_must_gather(tmp_path: Path, home: str) -> None:
    folder = tree(
        tmp_path,
        {
            f"{home}cluster-scoped-resources/core/nodes/worker-0.yaml": NODE,
            f"{home}timestamp": "2021-01-19 15:00:00.1 +0000 UTC m=+0.1\n2021-01-19 15:09:00 UTC\n",
            f"{home}host_service_logs/masters/kubelet_service.log": "Jan 19 14:00:00 x\n",
            f"{home}nodes/worker-0/dmesg": KILL,
            f"{home}nodes/worker-0/worker-0_logs_kubelet.gz": gzip.compress(b"Jan 19 14:00:00 x\n"),
            f"{home}namespaces/default/default.yaml": "kind: Namespace\n",
        },
    )
    found = report_of(must_gather, folder)
    assert found is not None
    assert (found.node_name, found.release) == ("worker-0", "4.18.0-193.el8.x86_64")
    assert found.taken_at_unix_seconds == 1611068400
    assert found.kernel_logs[0].endswith("/dmesg")
    assert len(found.kernel_logs) == 3
    text = run("oom", "explain", "--root", str(folder))
    assert "stress" in text
    page = run("why", "--json", "--root", str(folder))
    verdicts = {f["verdict"] for f in page["findings"] if f["id"] < "SW400"}
    assert verdicts == {"blind"}, "without /proc no memory is healthy"
    # Two nodes: the report is of neither of them.
    tree(folder, {f"{home}cluster-scoped-resources/core/nodes/worker-1.yaml": NODE})
    found = report_of(must_gather, folder)
    assert found is not None
    assert found.node_name is None


BAR = "____________________________________________\n"
NVIDIA = (
    f"\n{BAR}\nStart of NVIDIA bug report log file.  Please include this file, along\n"
    "with a detailed description of your problem.\n\nnvidia-bug-report.sh Version: 34275561\n\n"
    f"Date: Tue Jan 19 15:00:00 UTC 2021\nuname: {UNAME}command line flags: \n\n"
    f"{BAR}\n*** /etc/issue\n"
    "*** ls: -rw-r--r-- 1 root root 26 2020-01-01 00:00:00.0 +0000 /etc/issue\n"
    f"Ubuntu 20.04\n\n{BAR}\n*** /proc/meminfo\n"
    f"*** ls: -r--r--r-- 1 root root 0 2021-01-19 15:00:00.0 +0000 /proc/meminfo\n{MEMINFO}\n"
    f"{BAR}\n*** /proc/driver/nvidia/./warnings/README does not exist\n\n"
    f"{BAR}\n/bin/dmesg\n\n{KILL}\n{BAR}\njournalctl -b -0\n\nJan 19 14:00:00 node-7 kernel: x\n\n"
    f"{BAR}\n\nEnd of NVIDIA bug report log file.\n"
).encode()


@pytest.mark.parametrize("name", ["nvidia-bug-report.log", "nvidia-bug-report.log.gz"])
def test_nvidia_bug_report(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(NVIDIA) if name.endswith(".gz") else NVIDIA)
    assert nvidia_bug_report.is_report(str(path))
    for words in (["--from", str(path)], ["--root", str(path)], ["--root", str(tmp_path)]):
        page = run("memory", "--json", *words)
        assert page["host"]["node"] == "node-7"
        assert page["host"]["kernel"] == "4.18.0-240.el8.x86_64"
        assert page["taken_at"] == "2021-01-19T15:00:00Z"
        assert "stress" in run("oom", "explain", *words)


def test_nvidia_bug_report_cut_or_hostile(tmp_path: Path) -> None:
    packed = gzip.compress(NVIDIA)
    path = tmp_path / "cut.gz"
    path.write_bytes(packed[: len(packed) - 60])
    assert nvidia_bug_report.is_report(str(path))
    assert "/proc/meminfo" in nvidia_bug_report.round_of(str(path)).files
    assert not nvidia_bug_report.parse(BAR.encode() * 10_000).files
    hostile = NVIDIA.replace(b"/proc/meminfo\n***", b"/proc/../../etc/shadow\x1b\n***", 1)
    assert "/proc/meminfo" not in nvidia_bug_report.parse(hostile).files
    assert not nvidia_bug_report.is_report(str(ROOT / "README.md"))


def test_folder_that_is_nothing_of_the_kind_says_what_was_expected(tmp_path: Path) -> None:
    ran = seawall("why", "--root", str(tmp_path))
    assert ran.status == 2
    [line] = ran.err.decode().splitlines()
    assert "expected the root of a host, a sos report, a must-gather" in line
