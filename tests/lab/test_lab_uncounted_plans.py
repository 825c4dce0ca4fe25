"""Plans for memory that no limit counts: when they are refused, and how they are taken."""

import dataclasses
import os
import select
import signal
import time
from argparse import ArgumentParser

import pytest
from tests.end_to_end.verbs import seawall
from tests.lab.test_lab_plans import FACTS, GIB, MIB, plan, said

from seawall.cli.lab import add_arguments
from seawall.lab import lab_text, libraries, uncounted
from seawall.lab.plan import Driver, Kind
from seawall.lab.slots import Slots
from seawall.lab.uncounted import piece_bytes, whole_grains

KINDS: tuple[Kind, ...] = ("rings", "egl", "cuda-host", "cuda-managed")
SOFTWARE = Driver(name="llvmpipe", is_software=True)


@pytest.mark.parametrize("kind", KINDS)
def test_never_more_than_half_of_what_is_there_whatever_is_said(kind: Kind) -> None:
    # MemAvailable is 8 GiB.
    half = plan(kind, each_bytes=4 * GIB, limit_bytes=64 * MIB)
    assert said(half, large=True) == ""
    over = plan(kind, each_bytes=4 * GIB + MIB, limit_bytes=64 * MIB)
    for large in (False, True):
        words = said(over, large=large)
        assert "no limit counts this memory, so it is never more than 4.0 GiB, half of" in words
        most = "4096MiB" if large else "4031MiB"  # beside --limit and the process
        assert f"(MemAvailable 8.0 GiB): --size {most} at most" in words
    unknown = dataclasses.replace(FACTS, available_bytes=None)
    assert "it is not taken blindly" in said(half, unknown, large=True)


def test_limit_and_what_is_beside_it_count_together() -> None:
    both = plan("rings", each_bytes=3 * GIB, limit_bytes=2 * GIB)
    words = said(both)
    assert "--limit 2.0 GiB and --size 3.0 GiB beside it: more than 4.0 GiB, half of" in words
    assert "--limit 1023MiB at most, or --yes-large and --limit 4300MiB at most" in words
    assert said(both, large=True) == ""
    # The limits above do not count it: only --limit must fit there.
    tight = dataclasses.replace(FACTS, room_bytes=300 * MIB, room_of="/kubepods/x")
    small = plan("rings", each_bytes=GIB, limit_bytes=100 * MIB)
    assert said(small, tight) == ""


def test_never_more_than_half_of_what_the_device_has() -> None:
    card = Driver(name="card", free_bytes=GIB)
    over = plan("cuda-managed", each_bytes=600 * MIB, limit_bytes=64 * MIB, driver=card)
    words = said(over, large=True)
    assert "more than 512 MiB, half of what the device has free (1.0 GiB, as its driver" in words
    assert "--size 512MiB at most" in words
    assert said(dataclasses.replace(over, each_bytes=512 * MIB)) == ""


def test_what_a_software_driver_takes_is_held_by_the_limit() -> None:
    counted = plan("egl", each_bytes=6 * GIB, limit_bytes=512 * MIB, driver=SOFTWARE)
    assert counted.uncounted_bytes == 0
    assert said(counted) == ""
    assert plan("egl").uncounted_bytes == 512 * MIB
    assert plan("hog").uncounted_bytes == 0


@pytest.mark.parametrize(
    ("kind", "wanted", "expected"),
    [
        ("rings", 256 * MIB, 256 * MIB), ("rings", 100_000, 65536), ("rings", 1, 65536),
        ("egl", 100 * MIB, 96 * MIB), ("egl", 1, 16 * MIB), ("cuda-host", 5 * MIB, 4 * MIB),
        ("rings", 0, 0),
    ],
)  # fmt: skip
def test_whole_pieces_and_no_more_than_asked_for(kind: Kind, wanted: int, expected: int) -> None:
    assert whole_grains(kind, wanted) == expected


@pytest.mark.parametrize(
    ("kind", "size", "rate", "expected"),
    [
        ("rings", 256 * MIB, 16 * MIB, 4 * MIB),  # not less, for a ring is a descriptor
        ("rings", 256 * MIB, 128 * MIB, 16 * MIB),  # eight times a second
        ("rings", 256 * MIB, None, 64 * MIB),
        ("rings", 64 * GIB, 16 * MIB, 256 * MIB),  # 256 sockets at most
        ("egl", 256 * MIB, 16 * MIB, 16 * MIB),  # a surface
    ],
)
def test_pieces(kind: Kind, size: int, rate: int | None, expected: int) -> None:
    assert piece_bytes(plan(kind, each_bytes=size, step_bytes=rate)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_by_default_it_takes_long_enough_to_look(kind: str) -> None:
    """Whoever starts it has to type another command before it is over."""
    parser = ArgumentParser()
    add_arguments(parser)
    given = parser.parse_args([kind])
    assert 30 <= given.size / given.step < given.seconds


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        ([8 * GIB, 8 * GIB, None], "stopped at 64.0 MiB: MemAvailable cannot be read"),
        ([8 * GIB, 8 * GIB, 4 * GIB], "stopped at 64.0 MiB: MemAvailable has fallen to 4.0 GiB"),
        ([8 * GIB, 8 * GIB, 6 * GIB], ""),
        ([None, 8 * GIB], "stopped at 0 B: MemAvailable cannot be read"),
    ],
)
def test_it_stops_when_the_machine_has_less(
    monkeypatch: pytest.MonkeyPatch, available: list[int | None], expected: str
) -> None:
    """``available``: at the start, then before each of two pieces."""
    answers, said_words = iter(available), []
    slots = Slots(1)
    monkeypatch.setattr(uncounted, "available_bytes", lambda: next(answers))
    monkeypatch.setattr(uncounted, "TAKERS", {"rings": lambda _plan, _note: lambda piece: piece})
    monkeypatch.setattr(signal, "pause", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        uncounted.work(plan("rings", each_bytes=128 * MIB), slots, 0, said_words.append)
    assert " ".join(said_words).removesuffix(" meanwhile") == expected
    assert slots.read(0).done_bytes == (64 * MIB * (len(available) - 2) if expected else 128 * MIB)


def test_words() -> None:
    rings = plan("rings", step_bytes=16 * MIB)
    assert lab_text.uncounted_deed(rings) == (
        "one process takes 512 MiB of packet rings: uncounted memory, 16.0 MiB each second"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_help_says_what_no_limit_holds(kind: str) -> None:
    text = seawall("lab", kind, "--help").answered().text
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "half of\nMemAvailable", "memory --who", "lab clean", "--rate SIZE", "--limit SIZE",
        "ctrl-C", "--seconds",
    ):  # fmt: skip
        assert words in text, words


# --- asking a driver's library -------------------------------------------------------------


def test_an_answer_comes_back() -> None:
    assert (
        libraries.answer_in_child(lambda: {"name": "x", "pid": os.getpid()})["pid"] != os.getpid()
    )


def test_a_problem_is_words() -> None:
    def question() -> dict[str, str]:
        raise libraries.DriverProblem("nobody there")

    assert libraries.answer_in_child(question) == {"problem": "nobody there"}


def test_a_crash_is_the_childs() -> None:
    def question() -> dict[str, str]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    assert libraries.answer_in_child(question) == {
        "problem": "the driver's library ended the process that asked it (-9)"
    }


def test_a_hang_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "ASK_SECONDS", 0.5)
    began = time.monotonic()

    def question() -> dict[str, str]:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(60)
        return {}

    assert "did not answer" in libraries.answer_in_child(question)["problem"]
    assert time.monotonic() - began < 10


def test_what_no_kill_ends_is_told_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that hangs in the kernel."""
    monkeypatch.setattr(libraries, "ASK_SECONDS", 0.3)
    monkeypatch.setattr(libraries, "_END_SECONDS", 0.3)
    killed: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(libraries.os, "kill", lambda pid, _number: killed.append(pid))
        said_words = libraries.answer_in_child(lambda: time.sleep(60) or {})["problem"]
    (child,) = killed
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert f"the driver holds process {child}" in said_words


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_question_ends_with_whoever_asked(number: signal.Signals) -> None:
    reading, writing = os.pipe()

    def question() -> dict[str, str]:
        os.write(writing, b"asked")
        time.sleep(60)
        return {}

    asker = os.fork()
    if not asker:
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        libraries.answer_in_child(question)
        os._exit(1)
    os.close(writing)
    with open(reading, "rb", buffering=0) as pipe:
        assert pipe.read(5) == b"asked"
        os.kill(asker, number)
        os.waitpid(asker, 0)
        assert select.select([pipe], [], [], 5)[0], "it holds its end of the pipe: it lives"
        assert pipe.read(1) == b""


def test_a_library_that_is_missing_says_who_provides_it() -> None:
    with pytest.raises(libraries.DriverProblem, match=r"libnowhere\.so\.9 is missing: buy one"):
        libraries.load("libnowhere.so.9", "buy one")
