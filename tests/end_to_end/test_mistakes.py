"""Mistakes of the command line: one answer that helps, nothing before it, nothing that steers."""

from pathlib import Path

import pytest
from tests.end_to_end.warm_verbs import seawall

BOX = Path("/var/lib/seawall/blackbox")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("wy", "why"), ("WHY", "why"), ("mem", "memory"), ("memroy", "memory"), ("pod", "pods"),
        ("stack", "stacks"), ("black-box", "blackbox"), ("rule", "rules"), ("gaurd", "guard"),
    ],
)  # fmt: skip
def test_a_mistyped_verb_suggests_one(word: str, meant: str) -> None:
    done = seawall(word)
    assert (done.status, done.out) == (2, b"")
    assert done.err.decode() == f"seawall: no verb {word!r}; did you mean seawall {meant}?\n"


def test_what_is_like_no_verb_lists_them() -> None:
    done = seawall("xyzzy")
    assert (done.status, done.out) == (2, b"")
    assert b"no verb 'xyzzy'; the verbs: why, memory, " in done.err


def test_alone_it_prints_the_help() -> None:
    alone, asked = seawall(), seawall("--help")
    assert (alone.status, alone.err) == (0, b"")
    assert alone.out == asked.out
    assert b"seawall why" in alone.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["why", "--form", "x"], "unrecognized arguments: --form; did you mean --from?"),
        (["why", "--fail-on", "bad"], "--fail-on"),
        (["why", "--timeout", "never"], "--timeout"),
        (["why", "--rules"], "--rules"),
        (["why", "--audit", "--hwole"], "did you mean --whole?"),
        (["stacks", "--nonsense"], "seawall stacks: error: unrecognized arguments: --nonsense\n"),
        (["why", "--from", "/nonexistent"], "/nonexistent"),
    ],
)  # fmt: skip
def test_nothing_is_printed_on_the_way_to_a_usage_error(words: list[str], expected: str) -> None:
    done = seawall(*words)
    assert (done.status, done.out) == (2, b"")
    assert expected in done.err.decode()


@pytest.mark.parametrize("at", ["yesterday", "-90s"])
def test_a_time_without_a_record_says_what_is_missing(at: str) -> None:
    if BOX.exists():
        pytest.skip(f"a guard has kept {BOX} here: seawall guard undo, then remove it")
    done = seawall("why", "--at", at)
    assert (done.status, done.out) == (2, b"")
    assert done.err.decode() == (
        f"seawall: --at needs a record to look into, and {BOX} is not there: no guard has kept a "
        "black box here; name one with --from\n"
    )


def test_a_time_alone_means_the_hosts_black_box(tmp_path: Path) -> None:
    """That it holds no record is told of it by name."""
    box = tmp_path / "var/lib/seawall/blackbox"
    box.parent.mkdir(parents=True)
    box.touch()
    done = seawall("why", "--root", str(tmp_path), "--at", "-90s")
    assert (done.status, done.out) == (2, b"")
    assert str(box) in done.err.decode()
    assert "--at needs" not in done.err.decode()


@pytest.mark.parametrize(
    "words",
    [
        ["\x1b[31mwhy"], ["why", "--\x1b]0;x\x07"], ["why", "--fail-on", "\x1b[2J"],
        ["memory", "--timeout", "\x1b[2J"], ["why", "--color=\x9b31m"], ["--\x1b[31m"],
        ["gpu", "wait", "--\x1b[31m"], ["oom", "explain", "--\x1b[31m"], ["lab", "\x1b[31m"],
        ["guard", "\x1b[31m"], ["rules", "show", "\x1b[31m"], ["why", "--\u202e"],
    ],
)  # fmt: skip
def test_hostile_words_steer_no_terminal(words: list[str]) -> None:
    done = seawall(*words)
    assert done.status == 2
    text = done.err.decode().replace("\n", "")
    assert text.isprintable(), ascii(text)
    assert done.out == b""
