"""Traces inside the VM and writes what it saw to $OUT; see test_page_trace_61.py."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from seawall.host.page_trace import hist, kprobes, tracefs
from seawall.host.page_trace.options import TracedDriver, TraceOptions
from seawall.host.page_trace.tracer import PageTracer
from seawall.host.page_trace.tracing_problem import TracingProblem

OUT = os.environ.get("OUT", "")
MIB = 1 << 20
# Argument 3 of packet_setsockopt is the option's number: 5 is PACKET_RX_RING, "five pages".
STAND_IN = TracedDriver(name="stand-in", module="", allocate="packet_setsockopt", count_argument=3)
LOADS = [sys.executable, "-S", "-E", os.environ.get("JOB", "") + "/kernel_loads.py"]
GROUP = "/sys/fs/cgroup/culprit"


def save(name: str, value: object) -> None:
    with open(f"{OUT}/{name}.json", "w") as file:
        json.dump(value, file)


def instances(root: int) -> list[str]:
    return sorted(os.listdir(os.open("instances", tracefs.FOLDER, dir_fd=root)))


@contextmanager
def sending(port: int) -> Iterator[int]:
    """Somebody sends at full rate: the pid."""
    pair = [
        subprocess.Popen([*LOADS, what, str(port)], stdout=subprocess.DEVNULL)
        for what in ("receive", "send")
    ]
    time.sleep(1)
    yield pair[1].pid
    for process in pair:
        process.kill()
        process.wait()


def taking(tracer: PageTracer, words: list[str], seconds: float) -> subprocess.Popen[bytes]:
    """A culprit that was followed until it had all it wants."""
    tracer.pump(1)
    culprit = subprocess.Popen([*LOADS, *words], stdout=subprocess.PIPE)
    os.set_blocking(culprit.stdout.fileno(), False)
    said, until = b"", time.monotonic() + seconds
    while b"ready" not in said and time.monotonic() < until:
        tracer.pump(0.5)
        said += culprit.stdout.read() or b""
    tracer.pump(1)
    return culprit


def held() -> None:
    """A culprit in its cgroup, beside a sender at full rate."""
    os.makedirs(GROUP, exist_ok=True)
    words = ["enter", f"{GROUP}/cgroup.procs", "rings", str(64 * MIB), "0", "now"]
    with sending(7001) as sender, PageTracer.open(TraceOptions(drivers=(STAND_IN,))) as tracer:
        culprit = taking(tracer, words, 15)
        told = tracer.look()
        told["culprit"], told["sender"] = culprit.pid, sender
        told["inode"] = os.stat(GROUP).st_ino
        root = tracefs.attach()
        told["kprobe_events"] = tracefs.read_text(kprobes.PROBES, root)
        culprit.kill()
        culprit.wait()
        told["after"] = tracer.look()["held"]
    save("held", told)
    save("clean", [instances(root), tracefs.read_text(kprobes.PROBES, root)])


def sampled() -> None:
    """One frame in 64, beside a sender at full rate."""
    with sending(7002) as sender, PageTracer.open(TraceOptions(sample_one_in=64)) as tracer:
        culprit = taking(tracer, ["rings", str(256 * MIB), "0", "now"], 30)
        told = tracer.look()
    told["culprit"], told["sender"] = culprit.pid, sender
    save("sampled", told)
    culprit.kill()
    culprit.wait()


def driver() -> None:
    """NVIDIA's functions by the probes that are there for them, in a module that says it is it."""
    subprocess.run(["insmod", os.environ.get("JOB", "") + "/nvidia.ko"], check=True)
    words = ["device", "/dev/nvidia0", str(8 * MIB), "0"]
    with PageTracer.open(TraceOptions(with_hist=False)) as tracer:
        lines = tracefs.read_text(kprobes.PROBES, tracer.armed.root)
        gone = kprobes.Probe("never_was", "alloc", 0, "p", "")
        kprobes.enable(tracer.armed.pages, "seawall_1_1", [gone])
        holder, passer = (
            subprocess.Popen([*LOADS, *words, "keep", "now"], stdout=subprocess.PIPE)
            for _ in range(2)
        )
        for process in (holder, passer):
            while not process.stdout.readline().startswith(b"ready"):
                pass
        passer.kill()
        passer.wait()
        tracer.pump(1)
        told = tracer.look()
    told["holder"], told["passer"], told["lines"] = holder.pid, passer.pid, lines
    save("driver", told)
    holder.kill()
    holder.wait()
    subprocess.run(["rmmod", "nvidia"], check=True)


def paused() -> None:
    """Off is off: a trigger would keep its event at work."""
    with PageTracer.open() as tracer:
        pages = tracer.armed.pages
        states = []
        for step in (tracer.pause, tracer.resume, tracer.forget, lambda: None):
            tracer.pump(0.3)
            seen = tracer.armed.sums()
            states.append([pages.read(hist.TRIGGER), bool(seen and seen.pages)])
            step()
        tracer.pump(0.3)
        states.append([pages.read(hist.TRIGGER), bool(tracer.armed.sums())])
    save("paused", states)


def blind() -> None:
    """More threads than the kernel's own sums have room for."""
    hist.ENTRIES = 128
    with PageTracer.open(TraceOptions(buffer_kib=16)) as tracer:
        subprocess.run(["sh", "-c", "n=0; while [ $((n += 1)) -lt 400 ]; do (:); done"], check=True)
        tracer.pump(1)
        save("blind", tracer.look()["notes"])


def emptied() -> None:
    """As many threads, and the sums are asked for before there is no room."""
    hist.ENTRIES = 128
    child = ["sh", "-c", "n=0; while [ $((n += 1)) -lt 20 ]; do (:); done"]
    asked = []
    with PageTracer.open() as tracer:
        for _ in range(20):
            subprocess.run(child, check=True)
            sums = tracer.armed.sums()
            assert sums is not None
            asked.append([len(sums.pages), sums.pages.get(os.getpid(), 0), sums.dropped])
        last = hist.read(tracer.armed.pages)
        assert last is not None
        trigger = tracer.armed.pages.read(hist.TRIGGER)
    save("emptied", [asked, last.entries, trigger])


def killed(name: str, *, keeper: bool) -> None:
    """A tracer that is killed -9 while it traces."""
    root = tracefs.attach()
    child = os.fork()
    if not child:
        options = TraceOptions(drivers=(STAND_IN,), keeper=keeper)
        with PageTracer.open(options) as tracer:
            tracer.pump(60)
        os._exit(0)
    while len(instances(root)) < 3 or not tracefs.read_text(kprobes.PROBES, root):
        time.sleep(0.1)
    time.sleep(1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    until = time.monotonic() + (10 if keeper else 1)
    while (left := instances(root)) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.5)  # probes go after the instances
    recording = [tracefs.read_text(f"instances/{one}/tracing_on", root).strip() for one in left]
    probes = tracefs.read_text(kprobes.PROBES, root)
    with PageTracer.open() as tracer:  # the next run
        own = tracer.armed.pages.name.rpartition("-")[0]
        during = [one for one in instances(root) if not one.startswith(own)]
        swept_probes = tracefs.read_text(kprobes.PROBES, root)
    save(name, [left, recording, probes, during, swept_probes, instances(root)])


def beside_others() -> None:
    """Somebody else's instance and the global trace stay as they were."""
    root = tracefs.attach()
    os.mkdir("instances/somebody", dir_fd=root)
    event = "instances/somebody/events/kmem/mm_page_alloc"
    tracefs.write_text(f"{event}/filter", "order > 3", root)
    tracefs.write_text(f"{event}/enable", "1", root)
    tracefs.write_text("tracing_on", "0", root)
    tracefs.write_text("options/stacktrace", "1", root)
    paths = (
        f"{event}/enable", f"{event}/filter", "instances/somebody/tracing_on", "tracing_on",
        "events/kmem/enable", "trace_clock", "options/stacktrace",
        "instances/somebody/trace_clock", "instances/somebody/buffer_size_kb",
    )  # fmt: skip
    before = [tracefs.read_text(path, root) for path in paths]
    with PageTracer.open() as tracer:
        tracer.pump(1)
        during = [tracefs.read_text(path, root) for path in paths]
        ours = [one.read("options/stacktrace").strip() for one in tracer.armed.instances]
        events = tracer.look()["events"]
    after = [tracefs.read_text(path, root) for path in paths]
    tracefs.write_text("options/stacktrace", "0", root)
    save("others", [before, during, after, events, instances(root), ours])
    os.rmdir("instances/somebody", dir_fd=root)


def handed_over() -> None:
    """As on kernels before 5.2: a child mounts it and hands the descriptor over."""
    root = tracefs.attach_through_child()
    assert root is not None
    with open("/proc/self/mountinfo") as mounts:
        save("handed", [sorted(os.listdir(root))[:200], "tracefs" in mounts.read()])


def locked_down() -> None:
    subprocess.run(["mount", "-t", "securityfs", "none", "/sys/kernel/security"], check=True)
    with open("/sys/kernel/security/lockdown", "w") as file:
        file.write("confidentiality")
    try:
        PageTracer.open().close()
    except TracingProblem as problem:
        save("locked", [problem.why, problem.words])


if __name__ == "__main__":
    handed_over()
    held()
    sampled()
    driver()
    paused()
    blind()
    emptied()
    beside_others()
    killed("kept", keeper=True)
    killed("unkept", keeper=False)
    locked_down()
