"""What tracing uncounted pages costs: page faults and TCP over loopback, with and without it.

Interleaved in the same run: no tracer; one that is paused (a watcher that holds claims); one that
is armed; one that follows one page frame in SPARE_STEP (a watcher that has traced for
WHOLE_SECONDS); and, as a peer, what one would do by hand: the same two events with stacks and
without a filter, read and thrown away.  The best second of ROUNDS each: the machines are shared.
Beside them the watcher's own CPU while nothing grows, and how many events a second were held
against page frames.

    python -m bench.page_trace [--rounds N]
"""

import argparse
import json
import mmap
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"
ROUNDS = 5
SECONDS = 1.0
AREA_BYTES = 128 << 20
CONDITIONS = ("off", "paused", "spare", "armed", "by_hand")
MARK_PAUSED = 5.0  # percent; below it is the noise of a shared machine
NOISE = 5.0  # percent; an armed tracer must not cost more than tracing by hand, and this
MARK_WATCHER = 1.0  # percent of a CPU


def missing() -> str | None:
    """Why nothing can be traced here."""
    if os.geteuid():
        return "tracing is not measured: it needs root"
    from seawall.host.page_trace.tracer import PageTracer
    from seawall.host.page_trace.tracing_problem import TracingProblem

    try:
        PageTracer.open().close()
    except TracingProblem as problem:
        return f"tracing is not measured: {problem.words}"
    return None


def faults(seconds: float) -> float:
    """Page faults a second: anonymous memory is mapped, each page touched, and unmapped."""
    page = mmap.PAGESIZE
    touch = bytes(AREA_BYTES // page)
    done, began = 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        with mmap.mmap(-1, AREA_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
            area.madvise(15)  # MADV_NOHUGEPAGE: one fault for each page
            area[::page] = touch
        done += len(touch)
    return done / passed


def network(seconds: float) -> float:
    """Bytes a second through a TCP connection over loopback."""
    server = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(server.getsockname())
    receiver = server.accept()[0]
    block = bytes(256 << 10)

    def send() -> None:
        try:
            while True:
                sender.sendall(block)
        except OSError:
            return

    with server, sender, receiver:
        threading.Thread(target=send, daemon=True).start()
        room = bytearray(256 << 10)
        done, began = 0, time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            done += receiver.recv_into(room)
        sender.shutdown(socket.SHUT_RDWR)
    return done / passed


LOADS: dict[str, Callable[[float], float]] = {"faults": faults, "network": network}


def _rate(load: str) -> float:
    """In a process of its own: the tracer must not share its interpreter."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.page_trace", "--load", load],
        env={**os.environ, "PYTHONPATH": f"{SOURCES}:{SOURCES.parent}"},
        cwd=SOURCES.parent, check=True, capture_output=True,
    )  # fmt: skip
    return float(done.stdout)


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Percent by which each load is slower, and the events held each second."""
    rates: dict[tuple[str, str], list[float]] = {}
    events: list[float] = []
    for _ in range(rounds):
        for condition in CONDITIONS:
            with ExitStack() as stack:
                pump = _follower(condition, stack)
                for load in LOADS:
                    rate, followed = _under(pump, load)
                    rates.setdefault((load, condition), []).append(rate)
                    events += [followed] if condition == "armed" else []
    best = {key: max(found) for key, found in rates.items()}
    slower = {
        f"{load}_{condition}_percent": 100 * (1 - best[load, condition] / best[load, "off"])
        for load in LOADS for condition in CONDITIONS[1:]
    }  # fmt: skip
    plain = {f"{load}_a_second": best[load, "off"] for load in LOADS}
    return {**slower, **plain, "events_a_second": max(events), "watcher_percent": watcher_cpu()}


def _follower(condition: str, stack: ExitStack) -> Callable[[], int] | None:
    """What is called again and again beside a load; it tells how many events it followed."""
    from seawall.host.page_trace.tracer import PageTracer
    from seawall.watcher.memory_watch_loop import SPARE_STEP

    if condition == "off":
        return None
    if condition == "by_hand":
        return stack.enter_context(_by_hand())
    tracer = stack.enter_context(PageTracer.open())
    if condition == "paused":
        tracer.pause()
        return None
    if condition == "spare":
        tracer.narrow(SPARE_STEP)

    def pump() -> int:
        before = tracer.follower.statistics.events
        tracer.pump(0.1)
        return tracer.follower.statistics.events - before

    return pump


@contextmanager
def _by_hand() -> Iterator[Callable[[], int]]:
    """Both events with stacks in an instance with the tracer's own buffers, no filter."""
    from seawall.host.page_trace import instances, tracefs
    from seawall.host.page_trace.streams import Streams

    root = tracefs.attach()
    instances.sweep(root)
    instance = instances.make(root, f"{instances.PREFIX}{os.getpid()}-0-hand")
    streams = Streams(instance)
    try:
        instance.write("buffer_size_kb", str(16 << 10))
        instance.write("options/stacktrace", "1")
        for event in ("mm_page_alloc", "mm_page_free"):
            instance.write(f"events/kmem/{event}/enable", "1")

        def pump() -> int:
            time.sleep(0.1)
            return len(streams.drain())

        yield pump
    finally:
        streams.close()
        instance.write("events/enable", "0")
        instance.close()
        tracefs.let_go(root)


def _under(pump: Callable[[], int] | None, load: str) -> tuple[float, float]:
    """The load's rate while somebody follows; what he followed in a second."""
    if pump is None:
        return _rate(load), 0.0
    found: list[float] = []
    worker = threading.Thread(target=lambda: found.append(_rate(load)))
    began, followed = time.monotonic(), 0
    worker.start()
    while worker.is_alive():
        followed += pump()
    return found[0], followed / (time.monotonic() - began)


def watcher_cpu(tries: int = 3) -> float:
    """Percent of a CPU that ``memory --watch`` takes while nothing grows, once it has begun: the
    least of a few, for on a shared machine something may grow.
    """
    return min(_watcher_cpu(6.0) for _ in range(tries))


def _watcher_cpu(seconds: float) -> float:
    own = "mkdir -p /run/seawall && mount -t tmpfs tmpfs /run/seawall && exec"
    process = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", f"{own} {sys.executable} -m seawall memory --watch --json"],
        env={**os.environ, "PYTHONPATH": str(SOURCES)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout
        process.stdout.readline()
        before = _cpu_seconds(process.pid)
        time.sleep(seconds)
        return 100 * (_cpu_seconds(process.pid) - before) / seconds
    finally:
        process.terminate()
        process.communicate()


def _cpu_seconds(pid: int) -> float:
    """Of the process and of children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--load", choices=LOADS, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.load:
        LOADS[arguments.load](0.2)
        print(LOADS[arguments.load](SECONDS))
        return 0
    if why := missing():
        print(why)
        return 1
    print(json.dumps(measure(arguments.rounds), indent=1))
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
