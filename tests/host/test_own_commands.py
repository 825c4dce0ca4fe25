"""Programs run to the end or to a deadline."""

import time

from seawall.host.own_commands import find, run


def test_a_program_is_run_with_its_input() -> None:
    ran = run(["/bin/sh", "-c", "cat; echo why >&2; exit 3"], 10, b"given")
    assert (ran.status, ran.out, ran.words) == (3, "given", "why")


def test_one_that_does_not_end_is_killed_with_its_children() -> None:
    began = time.monotonic()
    ran = run(["/bin/sh", "-c", "sleep 1000 & sleep 1000"], 0.3)
    assert (ran.status, ran.words) == (None, "/bin/sh did not end in 0.3 s")
    assert time.monotonic() - began < 5


def test_one_that_is_not_there_is_told() -> None:
    assert find("no-such-program-here") is None
    assert find("sh") is not None
    assert run(["/nonexistent/x"], 1).words == "/nonexistent/x: No such file or directory"


def test_bytes_that_are_no_text_do_no_harm() -> None:
    ran = run(["/bin/sh", "-c", r"printf '\377\033[2J\n'"], 10)
    assert ran.status == 0
    assert ran.words == "\ufffd\x1b[2J"
