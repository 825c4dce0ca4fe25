# ruff: noqa: ISC004 - lines of logs are longer than ours
"""Further forms of the same kinds of lines: versions, envelopes, languages; and what is none."""

import pytest

from seawall.accounts.log_episodes.guard_events import guard_events
from seawall.accounts.log_episodes.log_events import events_of, recent_events
from seawall.readings.event_log.event_log import PATTERNS, read_events
from seawall.readings.event_log.log_line import LogClock, line_of

OOMD = "due to memory pressure for /a being 60.00% > 50.00% for > 20s with reclaim activity"
ID = "4bcba7fc4369fee4d7d2e6263b58fce52cfc928c6a31cfac4d43c838708991ce"
FORMS = {
    "oomd-swap-old": (
        "Oct 10 10:00:00 h systemd-oomd[1]: Killed /user.slice/app-firefox.scope due to memory "
        "used (16642097152) / total (16642117632) and swap used (4294967296) / total (4294963200) "
        "being more than 90.00%\nOct 10 10:00:00 h systemd[1000]: app-firefox.scope: systemd-oomd "
        "killed 37 process(es) in this unit.",
        ["systemd-oomd killed app-firefox for swap use"],
    ),
    "oomd-short-full": (
        f"Fri 2024-05-03 10:00:00 UTC h systemd-oomd[5]: Killed /a/b.scope {OOMD}",
        ["systemd-oomd killed b for memory pressure"],
    ),
    "oomd-json": (
        '{"__REALTIME_TIMESTAMP":"1732752000000000","SYSLOG_IDENTIFIER":"systemd-oomd",'
        '"MESSAGE":"Marked /s/foo.service for killing due to swap used (1) / total (2) being"}',
        ["systemd-oomd killed foo for swap use"],
    ),
    "oomd-of-meta": (
        "Sep 10 10:00:00 h oomd[50]: oomd kill: 10.00 5.00 1.00 system.slice/foo.service 1234567 "
        "ruleset:[protect] detectorgroup:[slow] killer:[kill_by_pressure] v2",
        ["oomd killed system.slice/foo.service"],
    ),
    "guard-died": (
        "Sep 10 10:00:00 h systemd[1]: seawall-guard.service: Main process exited, code=killed, "
        "status=9/KILL",
        ["seawall-guard itself ended: 9/KILL"],
    ),
    "oomd-of-meta-died": (
        "Sep 10 10:00:00 h systemd[1]: oomd.service: Main process exited, code=dumped, "
        "status=6/ABRT",
        ["oomd itself ended: 6/ABRT"],
    ),
    "eviction-new": (
        "Nov 28 02:00:00 n kubelet[1]: I1128 02:00:00.000001    1 eviction_manager.go:366] "
        '"Eviction manager: attempting to reclaim" resourceName="memory"\n'
        "Nov 28 02:00:00 n kubelet[1]: I1128 02:00:00.000001    1 eviction_manager.go:395] "
        '"Eviction manager: pods ranked for eviction" pods=["ml/llm-0","web/a-1"]\n'
        "Nov 28 02:00:03 n kubelet[1]: I1128 02:00:03.000001    1 eviction_manager.go:614] "
        '"Eviction manager: pod is evicted successfully" pod="ml/llm-0"',
        ["kubelet evicted llm-0 for memory"],
    ),
    "eviction-k3s": (
        "May  3 10:00:00 h k3s[5]: I0503 10:00:00.000000 5 eviction_manager.go:614] "
        '"Eviction manager: pod is evicted successfully" pod="ml/llm-0"',
        ["kubelet evicted llm-0"],
    ),
    "eviction-low": (
        "2024-05-01T10:00:00.1Z n kubelet[1]: E0501 10:00:00.1 1 x.go:1] The node was low on "
        "resource: memory. Threshold quantity: 100Mi, available: 42300Ki. Container main was "
        "using 12Gi, request is 1Gi, has larger consumption of memory.",
        ["kubelet evicted a pod for memory"],
    ),
    "eviction-not-done": (
        "I1128 02:00:00.000001    1 eviction_manager.go:366] "
        '"Eviction manager: attempting to reclaim" resourceName="memory"',
        ["kubelet tried to reclaim memory; no eviction is told"],
    ),
    "not-ready-new": (
        "I0501 10:00:00.000000 5 kubelet_node_status.go:669] "
        '"Recording event message for node" node="n1" event="NodeNotReady"\n'
        "I0501 10:01:00.000000 5 kubelet_node_status.go:669] "
        '"Recording event message for node" node="n1" event="NodeReady"',
        ["node n1 NotReady for 60 s"],
    ),
    "pleg-docker-json": (
        '{"log":"E0501 10:00:00.000000 5 kubelet.go:1] PLEG is not healthy: pleg was last seen '
        'active 5m0s ago; threshold is 3m0s\\n","stream":"stderr","time":"2024-05-01T10:00:00.5Z"}',
        ["kubelet: PLEG not healthy, silent for 5 min"],
    ),
    "xid-storm": (
        "\n".join(
            f"[{100 + i}.000000] NVRM: Xid (PCI:0000:3b:00): 31, pid=77, name=python3, Ch 00000008"
            for i in range(500)
        ),
        ["Xid 31 on GPU 0000:3b:00, 500 times, python3"],
    ),
    "talos": (
        "10.0.0.3: user: warning: [2026-01-02T03:04:05.678Z]: [talos] Sending SIGKILL to cgroup "
        '{"component": "controller-runtime", "controller": "runtime.OOMController", '
        '"cgroup": "/sys/fs/cgroup/kubepods/besteffort/pod12/abc", "processes": 3}',
        ["Talos killed the cgroup abc"],
    ),
    "talos-victims": (
        "user: warning: [2026-01-12T20:27:31.913975631Z]: [talos] Sending SIGKILL to cgroup "
        '{"component": "controller-runtime", "controller": "runtime.OOMController", '
        '"cgroup": "/sys/fs/cgroup/kubepods/burstable/pod77f06c5c"}\n'
        "user: warning: [2026-01-12T20:27:31.915094631Z]: [talos] victim processes: "
        '{"component": "controller-runtime", "controller": "runtime.OOMController", '
        '"processes": ["/usr/bin/foo --token secret", "bar", "bar"]}',
        ["Talos killed the cgroup pod77f06c5c: foo, bar"],
    ),
    "earlyoom-french": (
        "27 déc. 10:00:00 h earlyoom[5]: low memory! at or below SIGKILL limits: mem  2.00%, "
        'swap  5.00%\n27 déc. 10:00:00 h earlyoom[5]: sending SIGKILL to process 10 uid 1000 '
        '"chrome": oom_score 800, VmRSS 1000 MiB\n'
        "27 déc. 10:00:01 h earlyoom[5]: process exited after 0.3 seconds",
        ["earlyoom sent SIGKILL to chrome"],
    ),
    "earlyoom-rfc5424": (
        "<30>1 2024-05-03T10:00:00.1Z h earlyoom 55 - - sending SIGTERM to process 5 uid 0 "
        '"x": badness 711, VmRSS 52562 MiB',
        ["earlyoom sent SIGTERM to x"],
    ),
    "docker": (
        '2024-05-01T10:00:00.1+02:00 n dockerd[1]: time="2024-05-01T10:00:00.12+02:00" level=info '
        f'msg="ignoring event" container={ID} module=libcontainerd topic=/tasks/oom',
        ["dockerd: OOM event for container 4bcba7fc4369"],
    ),
    "containerd-old": (
        'May  1 10:00:00 n containerd[1]: time="2020-05-01T10:00:00.1Z" level=info '
        f'msg="TaskOOM event &TaskOOM{{ContainerID:{ID},XXX_unrecognized:[],}}"',
        ["containerd: OOM event for container 4bcba7fc4369"],
    ),
    "cri-o": (
        f"May  1 10:00:00 n conmon[5]: conmon {ID[:20]} <ninfo>: OOM event received",
        ["conmon: OOM event for container 4bcba7fc4369"],
    ),
    "slurm-new": (
        "[2025-03-01T10:00:00.123] [12.0] error: Detected 3 oom_kill events in StepId=12.0. Some "
        "of the step tasks have been OOM Killed.",
        ["Slurm step 12.0 ran out of its memory limit"],
    ),
    # What a real 22.05.8 wrote into the job's own output, of several slurmd on one host.
    "slurm-job-output": (
        "slurmstepd-swb34d13n1: error: Detected 1 oom-kill event(s) in StepId=1.0. Some of your "
        "processes may have been killed by the cgroup out-of-memory handler.",
        ["Slurm step 1.0 ran out of its memory limit"],
    ),
    "slurm-20.11-heterogeneous": (
        "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=9.1+2 cgroup. Some of your "
        "processes may have been killed by the cgroup out-of-memory handler.",
        ["Slurm step 9.1+2 ran out of its memory limit"],
    ),
    "slurm-own-id": (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=sEKNKTV3WPV500.batch. Some of the "
        "step tasks have been OOM Killed.",
        ["Slurm step sEKNKTV3WPV500.batch ran out of its memory limit"],
    ),
    "slurm-own-kill": (
        "[2025-03-01T10:00:00.123] [12.0] error: StepId=12.0 exceeded memory limit (4294967296 > "
        "2147483648), being killed",
        ["Slurm ended step 12.0 itself: 4.0 GiB of memory, its limit is 2.0 GiB"],
    ),
    "slurm-own-kill-17.02": (
        "slurmstepd: error: Job 77 exceeded virtual memory limit (5000 > 4000), being killed",
        ["Slurm ended job 77 itself: 5000 of virtual memory, its limit is 4000"],
    ),
    "slurm-limit-reached-alone": (
        "[2025-03-01T10:00:00.123] [13.batch] StepId=13.batch hit memory limit at least once "
        "during execution. This may or may not result in some failure.",
        [],
    ),
    "srun": (
        "srun: error: node01: tasks 0-3: Out Of Memory",
        ["Slurm task 0-3 on node01 ran out of memory"],
    ),
    "kubelet-oom": (
        "W0501 10:00:00.000000    5 oom_watcher_linux.go:84] System OOM encountered, victim "
        "process: python, pid: 1234",
        ["kubelet saw OOM kills of python (1234)"],
    ),
    "systemd-unit": (
        "Jan  1 10:00:00 h systemd[1]: mysql.service: A process of this unit has been killed by "
        "the OOM killer.",
        ["OOM kill in mysql.service, says systemd"],
    ),
    "kernel-json": (
        '{"__REALTIME_TIMESTAMP":"1732752000000000","_TRANSPORT":"kernel","MESSAGE":"Memory cgroup '
        "out of memory: Killed process 5 (java) total-vm:10kB, anon-rss:9kB, file-rss:0kB, "
        'shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0"}',
        ["kernel OOM-killed java, at a memory limit"],
    ),
    "guard": (
        "[  200.0] seawall-guard: version 0.1.0 started, mode observe: it never kills\n"
        "[  300.000001] seawall-guard: 1a2b3c4d-0007: (observing only) 256 MiB have to come back\n"
        "[  300.100001] seawall-guard: 1a2b3c4d-0007: would have killed ml/llm-0",
        ["the guard would have killed ml/llm-0: 256 MiB have to come back"],
    ),
    "hung-in-io": (
        "[  200.000001] INFO: task jbd2/sda1-8:55 blocked in I/O wait for more than 120 seconds.",
        ["1 task hung for at least 120 s: jbd2/sda1-8"],
    ),
    "hung-kmsg": (
        "6,1,200000001,-;INFO: task foo:5 blocked for more than 120 seconds.",
        ["1 task hung for at least 120 s: foo"],
    ),
    "soft-lockup": (
        "[  200.000001] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kworker/3:1:77]",
        ["CPU 3 stuck for 22 s in kworker/3:1"],
    ),
    "allocation-2.6": (
        "[  200.000001] swapper: page allocation failure. order:1, mode:0x20",
        ["the kernel found no 8 KiB in one piece for swapper"],
    ),
    "boot-unclean": (
        "Jan 01 10:00:00 h cron[5]: hello\n-- Boot 0123456789abcdef0123456789abcdef --\n"
        "Jan 01 10:05:30 h kernel: Linux version 6.1.0 (gcc)",
        ["started without a shutdown, 5 min 30 s after its last line"],
    ),
    "boot-clean": (
        "Jan  1 10:00:00 h systemd[1]: Reached target System Reboot.\n"
        "Jan  1 10:00:01 h systemd-shutdown[1]: Syncing filesystems and block devices.\n"
        "Jan  1 10:00:02 h systemd-journald[5]: Journal stopped\n"
        "Jan  1 10:00:30 h kernel: Linux version 6.1.0 (gcc)",
        [],
    ),
    "quoted-by-a-program": (
        "Jan  1 10:00:00 h myapp[5]: oomd kill: 1 2 3 /x 5 ruleset:[a]\n"
        f"Jan  1 10:00:00 h myapp[5]: Killed /x {OOMD}\n"
        "Jan  1 10:00:00 h myapp[5]: PLEG is not healthy: pleg was last seen active 5m0s ago; "
        "threshold is 3m0s\n"
        "Jan  1 10:00:00 h myapp[5]: INFO: task foo:5 blocked for more than 120 seconds.",
        [],
    ),
    "banner-of-earlyoom": (
        "mars 27 18:46:05 h earlyoom[1460]: sending SIGTERM when mem <=  4.00% and swap <= 10.00%,",
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form(name: str) -> None:
    text, wanted = FORMS[name]
    lines = [line.encode() + b"\n" for line in text.split("\n")]
    assert [event.sentence for event in events_of(read_events(lines, LogClock()))] == wanted


@pytest.mark.parametrize(
    ("word", "month"),
    [("mars", 3), ("Okt", 10), ("déc.", 12), ("juin", 6), ("juil.", 7), ("août", 8), ("Mär", 3),
     ("ene", 1), ("дек", 12), ("paź", 10), ("Ağu", 8), ("12月", 12)],
)  # fmt: skip
def test_months_of_other_languages(word: str, month: int) -> None:
    line = line_of(f"{word} 27 18:46:05 h earlyoom[1]: x".encode(), 1, LogClock())
    wall = line_of(f"2000-{month:02}-27T18:46:05 h earlyoom[1]: x".encode(), 1, LogClock())
    assert line.moment.wall_seconds == wall.moment.wall_seconds
    assert (line.program, line.pid, line.text) == ("earlyoom", "1", "x")
    assert line.moment.unix_seconds is None


def kill(seconds: float, name: str, pid: int) -> bytes:
    return (
        f"6,1,{int(seconds * 1e6)},-;Out of memory: Killed process {pid} ({name}) "
        "total-vm:10kB, anon-rss:9kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB "
        "oom_score_adj:0\n"
    ).encode()


def test_kills_within_seconds_are_one_event_and_the_span_is_kept() -> None:
    names = ["hog", "login", "bash", "sshd", "cron"]
    lines = [kill(10.0, "old", 1)]
    lines += [kill(5000.0 + i, name, 10 + i) for i, name in enumerate(names)]
    clock = LogClock(boot_unix_seconds=1e9, now_unix_seconds=1e9 + 5017.0)
    recent = recent_events({"/dev/kmsg": lines}, clock, 1800.0)
    (event,) = recent.events
    assert event.sentence == "kernel OOM-killed hog, login, bash and 2 more in 4 s"
    assert event.count == 5
    assert event.source == "/dev/kmsg"
    assert event.more == "seawall oom explain"
    assert event.last_at_unix_seconds == pytest.approx(1e9 + 5004.0)


def test_what_others_say_of_the_kernels_kill_is_not_told_twice() -> None:
    clock = LogClock(boot_unix_seconds=1e9, now_unix_seconds=1e9 + 20.0)
    journal = [
        b"1000000010.500000 n kubelet[1]: W0501 10:00:00.000000    5 oom_watcher_linux.go:84] "
        b"System OOM encountered, victim process: hog, pid: 10\n"
    ]
    recent = recent_events({"/dev/kmsg": [kill(10.0, "hog", 10)], "journal": journal}, clock)
    assert [event.sentence for event in recent.events] == ["kernel OOM-killed hog"]


def test_a_flood_is_read_in_bounded_memory_and_time() -> None:
    line = b"[  200.000001] INFO: task foo:5 blocked for more than 120 seconds.\n"
    events = events_of(read_events(iter([line] * 100_000), LogClock()))
    assert len(events) == 1
    assert events[0].count == 1


def test_of_a_log_without_placed_dates_the_end_is_told() -> None:
    lines = [
        (
            f'Jan  1 {hour}:00:00 h earlyoom[5]: sending SIGTERM to process 5 uid 0 "p{hour}": '
            "badness 7, VmRSS 5 MiB\n"
        ).encode()
        for hour in (10, 12)
    ]
    recent = recent_events({"/var/log/messages": lines}, LogClock(None, 1e9), 1800.0)
    assert [event.sentence for event in recent.events] == ["earlyoom sent SIGTERM to p12"]


def test_a_decision_of_the_guard_is_told_once() -> None:
    clock = LogClock(boot_unix_seconds=1e9, now_unix_seconds=1e9 + 20.0)
    told = (
        '{"kind":"verdict","decision":"1a2b3c4d-0007","at":"2001-09-09T01:46:50Z",'
        '"mode":"observe","sentence":"256 MiB have to come back: ml/llm-0 is killed"}'
    )
    kmsg = [b"6,1,10500000,-;seawall-guard: 1a2b3c4d-0007: would have killed ml/llm-0\n"]
    decisions = list(guard_events([told.encode()], "guard"))
    assert decisions[0].last_at_unix_seconds == 1e9 + 10.0
    recent = recent_events({"/dev/kmsg": kmsg}, clock, 1800.0, (), decisions)
    sentence = "the guard would have killed ml/llm-0: 256 MiB have to come back"
    assert [event.sentence for event in recent.events] == [sentence]
    alone = recent_events({}, clock, 1800.0, (), decisions)
    assert alone.events[0].sentence.startswith("the guard would have acted: 256 MiB have to come")


def test_every_pattern_can_be_tried() -> None:
    assert len(PATTERNS) > 70
    said = [one.what for one in PATTERNS if one.match("\0") is not None]
    assert said == ["shutdown"], "every line of systemd-shutdown is of one, and no other pattern is"
