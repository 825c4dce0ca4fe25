"""What sinfo says of nodes: flags, reasons that hold anything, output that breaks off."""

import pytest

from seawall.problems import ParseProblem
from seawall.readings.slurm_node_rows import FIELDS, parse

END = "\x1f"


def line(*words: str) -> str:
    return "".join(word + END for word in words) + "\n"


IDLE = line("n1", "h1", "idle", "Unknown", "(null)", "(null)", "none")
OURS = line("n2", "h2", "idle+drain", "1795977429", "(null)", "ho", "seawall: gpu: 7 of 8")


def test_a_node_that_is_up_and_one_that_is_drained() -> None:
    rows = parse((IDLE + OURS).encode())
    assert (rows["n1"].states, rows["n1"].reason, rows["n1"].reason_unix_seconds) == (
        {"idle"}, "", None,
    )  # fmt: skip
    assert rows["n2"].states == {"idle", "drain"}
    assert (rows["n2"].reason, rows["n2"].reason_unix_seconds, rows["n2"].extra) == (
        "seawall: gpu: 7 of 8", 1795977429, "ho",
    )  # fmt: skip


def test_a_node_of_two_partitions_is_one() -> None:
    assert len(parse((OURS + IDLE + OURS).encode())) == 2


def test_a_reason_of_several_lines_is_one_reason() -> None:
    rows = parse(line("n1", "h", "down", "5", "", "", "first\nsecond = x | y").encode())
    assert rows["n1"].reason == "first\nsecond = x | y"


@pytest.mark.parametrize(
    "text",
    [
        IDLE + OURS[:-4],
        line("n1", "h1", "idle"),
        line(*["x"] * (len(FIELDS) + 1)),
        line("", "h", "idle", "1", "", "", ""),
        "sinfo: error: no such host\n",
    ],
)
def test_what_is_no_answer_is_none(text: str) -> None:
    """A node that is not counted would be a node more that may be drained."""
    with pytest.raises(ParseProblem):
        parse(text.encode())
