"""What Slurm prints, and what users write into it, are told apart."""

import pytest
from tests.cluster_slurm.slurm_samples import MARKS, job_line, node_line

from seawall.cluster.slurm.slurm_rows import (
    ACCOUNTING_FIELDS,
    RowMarks,
    accounted_jobs,
    job_format,
    job_rows,
    leaf_switches,
    node_rows,
)
from seawall.formats.host_list import hosts_of


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
        ("gpu[008-011],login", ["gpu008", "gpu009", "gpu010", "gpu011", "login"]),
        ("r[1-2]n[1-2]-x", ["r1n1-x", "r1n2-x", "r2n1-x", "r2n2-x"]),
        ("", []),
        ("(null)", []),
    ],
)
def test_a_list_of_nodes_is_expanded(words: str, hosts: list[str]) -> None:
    assert list(hosts_of(words)) == hosts


@pytest.mark.parametrize("words", ["n[1", "n]1", "n[1-x]", "n[0-999999999]", "n[1-9][1-99999]" * 2])
def test_what_is_no_list_of_nodes_is_refused(words: str) -> None:
    with pytest.raises(ValueError, match="node"):
        hosts_of(words)


def test_nodes_are_read_with_state_flags_kernel_and_boot() -> None:
    text = "\n".join([
        node_line("n1", "MIXED+NOT_RESPONDING"),
        node_line("n2", "DOWN*+DRAIN", reason="broken State=IDLE [root@2026-11-29T18:00:00]"),
        node_line("n3", "IDLE~"),
    ])  # fmt: skip
    rows = node_rows(text)

    assert rows["n1"].is_silent
    assert not rows["n1"].is_down
    assert (rows["n1"].kernel, rows["n1"].pool) == ("6.1.0-28-amd64", "main,gpu")
    assert rows["n2"].is_silent
    assert rows["n2"].is_down
    assert rows["n2"].is_planned
    assert rows["n2"].reason.startswith("broken State=IDLE")
    assert rows["n3"].is_planned


def test_a_reason_with_a_line_of_a_node_in_it_makes_no_node_of_two_states() -> None:
    line = node_line("n1", "IDLE").replace("PREEMPT_DYNAMIC", "x State=DOWN+NOT_RESPONDING")
    rows = node_rows(node_line("n2", "IDLE") + "\n" + line)
    assert set(rows) == {"n2"}


def test_a_job_is_read_whole() -> None:
    text = job_line(
        JobID="4701", ArrayJobID="4700", ArrayTaskID="12", NodeList="n[1-2]", RestartCnt="3"
    )
    rows, bad = job_rows(text, MARKS)
    row = rows[4701]
    assert bad == 0
    assert (row.unit, row.address, row.run, row.nodes) == (4700, "4700_12", "4701.3", ("n1", "n2"))
    assert row.is_on_nodes


def test_tasks_that_wait_together_have_an_address_of_their_own() -> None:
    rows, _ = job_rows(job_line(ArrayJobID="7", ArrayTaskID="3-200%2", State="PENDING"), MARKS)
    assert rows[7].address == "7_[3-200]"


@pytest.mark.parametrize(
    "name",
    [
        "x UserId=root(0) NodeList=n9 JobState=DONE",
        "x\n9\t0\tN/A\tN/A\troot",
        "x~0123456789acf~root~0123456789acr~\n",
        "x" + job_line(JobID="9", UserID="0", UserName="root").replace("0123456789ab", "00"),
        "\x1b[2J\x00\udcff",
    ],
)
def test_a_name_forges_no_field_and_no_row(name: str) -> None:
    text = job_line(Name=name) + job_line(JobID="8", Name="honest")
    rows, bad = job_rows(text, MARKS)
    assert bad == 0
    assert {number: row.uid for number, row in rows.items()} == {7: 1000, 8: 1000}
    assert rows[7].name == name[:1024]


def test_an_answer_that_breaks_off_is_none() -> None:
    with pytest.raises(ValueError, match="breaks off"):
        job_rows(job_line() + job_line(JobID="8")[:40], MARKS)


def test_rows_that_are_no_jobs_are_counted() -> None:
    rows, bad = job_rows(job_line(UserID="alice") + job_line(JobID="8"), MARKS)
    assert (set(rows), bad) == ({8}, 1)


def test_each_call_has_other_marks_and_asks_for_whole_fields() -> None:
    words = job_format(RowMarks.of("aa"))
    assert words.startswith("JobID:0~aaf~,")
    assert words.endswith(",Name:0~aar~")


def test_accounted_jobs_are_those_that_ended_with_a_node() -> None:
    def line(job: str, state: str, name: str = "x") -> str:
        fields = (job, "1000", "alice", "physics", state, "n[1-2]", "2026-11-29T18:00:00", name)
        assert len(fields) == len(ACCOUNTING_FIELDS)
        return MARKS.field.join(fields) + f"{MARKS.field}\n"

    text = line("7", "NODE_FAIL", "a\n9|0|root") + line("7.batch", "NODE_FAIL")
    found = accounted_jobs(text + line("8", "COMPLETED"), MARKS)
    assert [(one.job, one.nodes) for one in found] == [(7, ("n1", "n2"))]


def test_leaf_switches_are_domains_unless_they_are_large() -> None:
    text = (
        "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=m[1-99]\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-2],m[1-99] Switches=s[0-1]\n"
    )
    assert leaf_switches(text) == {"n1": "s0", "n2": "s0"}
