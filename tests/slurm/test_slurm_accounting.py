"""With slurmdbd: an Operator is enough for every lever, and sacct tells of what a look missed."""

import sys
import time
from collections.abc import Iterator

import pytest
from tests.slurm.accounted_room import AccountedSlurmRoom, missing_accounting
from tests.slurm.judged_room import judge_of

from seawall.cluster.slurm.slurm_reader import SlurmReader
from seawall.host.slurm_commands import SlurmCommands

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
LIE = "x~|y\n9|0|root|NODE_FAIL|n1"


@pytest.fixture(scope="module")
def accounted() -> Iterator[AccountedSlurmRoom]:
    if why := missing_accounting():
        pytest.skip(why)
    with AccountedSlurmRoom() as room:
        yield room


def test_an_operator_holds_reads_and_releases_and_comments_nothing(
    accounted: AccountedSlurmRoom,
) -> None:
    job = accounted.submit("exec sleep 300", "--mem=50", "--account=physics")
    accounted.wait(lambda: "R" in accounted.command("squeue", "-h", "-o", "%t"), "a job")
    for words in (
        ("scontrol", "write", "batch_script", str(job), "-"),
        ("scontrol", "hold", str(job)),
        ("scontrol", "release", str(job)),
        ("scontrol", "update", f"JobId={job}", "Priority=77"),
    ):
        done = accounted.as_operator(*words)
        assert done.returncode == 0, (words, done.stderr)
    refused = accounted.as_operator("scontrol", "update", f"JobId={job}", "AdminComment=x")
    assert refused.returncode != 0
    assert "seawall" not in refused.stderr
    look = accounted.as_operator(
        sys.executable, "-c",
        "from seawall.cluster.slurm.slurm_reader import SlurmReader as R;"
        "from seawall.host.slurm_commands import SlurmCommands as C;"
        f"print(R(C()).view().jobs[{job}].account)",
    )  # fmt: skip
    assert look.stdout.strip() == "physics", look.stderr
    accounted.command("scancel", str(job))


def test_accounting_knows_who_ended_with_a_node(accounted: AccountedSlurmRoom) -> None:
    reader = SlurmReader(SlurmCommands(f"{accounted.folder}/slurm.conf"))
    began = time.time()
    with judge_of(accounted) as judge:
        judge.start()
        accounted.wait(judge.read, "the first look")
        job = accounted.submit(
            "exec sleep 300", "--mem=50", "--account=physics", f"--job-name={LIE}"
        )
        accounted.wait(lambda: "R" in accounted.command("squeue", "-h", "-o", "%t"), "a job")
        node = accounted.command("squeue", "-h", "-o", "%N").split()[0]
        time.sleep(2.0)
        accounted.kill_node(node)
        accounted.wait(lambda: judge.read()["deaths"], "a death", 120)
        (death,) = judge.read()["deaths"]
        assert [one["unit"] for one in death["jobs"]] == [job]
        assert death["unseen"] == []
    accounted.wait(lambda: reader.accounted(began - 60.0), "its row", 60)
    (row,) = reader.accounted(began - 60.0)
    assert (row.job, row.user, row.account, row.nodes) == (job, "games", "physics", (node,))
    accounted.command("scancel", str(job))
    accounted.start_node(node, "-b")
