"""``seawall gpu`` and its questions as a user types them, in processes of their own."""

import json
import os
import sys
import threading
import time
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests.end_to_end.verbs import ENVIRONMENT, Ran, run
from tests.end_to_end.warm_verbs import seawall

DEVICES = (
    "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n511 nvidia-uvm\n\nBlock devices:\n"
)
UVM = "/dev/nvidia-uvm is missing, though nvidia-uvm is loaded (c 511:0)"
is_root = os.geteuid() == 0
has_gpu = os.path.exists("/dev/nvidiactl")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mknod needs root: make test-system")


def document(ran: Ran, name: str) -> dict[str, object]:
    found = ran.answered().document
    schema = json.loads((files("seawall.views") / f"schemas/{name}.json").read_text())
    jsonschema.validate(found, schema)
    return found


def test_the_table_of_this_machine() -> None:
    text = seawall("gpu").answered().text
    assert "Could not see" in text
    assert not [line for line in text.splitlines() if len(line) > 80 and " " in line[2:60]]
    found = document(seawall("gpu", "--json"), "gpu")
    assert found["workload"] is None
    if not has_gpu and not found["containers"] and not found["host_nodes"]:
        assert "was promised a device; /proc/devices knows no GPU driver." in " ".join(text.split())


def test_a_workload_without_devices_and_one_that_is_none() -> None:
    told = seawall("gpu", f"pid:{os.getpid()}")
    assert told.status == 0 or b"no process" in told.err
    if told.status == 0:
        assert "was promised no device." in " ".join(told.text.split())
    missing = seawall("gpu", "no/such")
    assert missing.status == 2
    assert b"no workload 'no/such'" in missing.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gpu", "--timeout", "9", "wait"], "'wait' is a question: it comes first"),
        (["gpu", "query", "a/b/c"], "no workload 'a/b/c'" if is_root else "needs root (CAP_SYS_"),
        (["gpu", "--open", "--from", "/nonexistent"], "/nonexistent"),
        (["gpu", "wait", "--root", "/nonexistent"], "no dev folder"),
        (["gpu", "wait", "--timeout", "0"], "--timeout"),
        (["gpu", "check", "--need", "abacus"], "abacus"),
        (["gpu", "--create"], "--create"),
        (["gpu", "wait", "extra"], "usage: seawall gpu wait"),
        (["gpu", "a/b", "extra"], "seawall gpu: error: unrecognized arguments: extra"),
    ],
)
def test_unusable_words_are_told(words: list[str], expected: str) -> None:
    done = seawall(*words)
    assert done.status == 2
    assert expected in done.err.decode()
    assert b"Traceback" not in done.err


@pytest.mark.parametrize("question", ["wait", "check", "query"])
def test_each_question_has_help_of_its_own(question: str) -> None:
    done = seawall("gpu", question, "--help")
    assert done.status == 0
    assert f"usage: seawall gpu {question}" in done.text
    whole = seawall("gpu", "--help").text
    assert f"  {question} " in whole
    assert max(map(len, (done.text + whole).splitlines())) <= 80


def test_query_answers_where_there_is_no_driver() -> None:
    if has_gpu:
        pytest.skip("this machine has a driver")
    text = " ".join(seawall("gpu", "query").answered().text.split())
    assert "0 devices: neither libnvidia-ml.so.1 nor libcuda.so.1 was found." in text
    assert "This host may simply have no NVIDIA driver." in text
    assert "/usr/local/nvidia/lib64" in text, "where it looked"
    found = document(seawall("gpu", "query", "--json"), "gpu-query")
    assert (found["devices"], found["problem"]) == ([], None)


def test_query_of_a_workload_asks_a_driver_and_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    done = seawall("gpu", "query", "a/b/c", "--root", str(tmp_path))
    assert done.status == 2
    assert "has no driver to be asked" in done.err.decode()
    assert "seawall gpu a/b/c with the same source" in done.err.decode()


# --- wait ------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host with the NVIDIA modules loaded, and an empty /dev."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "dev").mkdir()
    (tmp_path / "proc/devices").write_text(DEVICES)
    return tmp_path


def wait(root: Path, *words: str) -> Ran:
    return seawall("gpu", "wait", "--root", str(root), *words)


def test_wait_ends_at_once_where_no_module_implies_a_node(root: Path) -> None:
    (root / "proc/devices").write_text("Character devices:\n  1 mem\n")
    done = wait(root)
    assert (done.status, done.text) == (
        0, "No loaded module implies a control node: nothing to wait for.\n",
    )  # fmt: skip
    needed = wait(root, "--need", "nvidia-uvm", "--timeout", "0.3")
    assert needed.status == 10
    assert "nvidia-uvm is not in /proc/devices: its module is not loaded" in needed.text


def test_wait_names_what_is_missing_and_what_makes_it(root: Path) -> None:
    done = wait(root, "--timeout", "0.5")
    assert done.status == 10
    assert done.text.count("\n") == 1
    assert UVM in done.text
    assert "/dev/nvidiactl is missing, though nvidiactl is loaded (c 195:255)" in done.text
    assert "made by: nvidia-modprobe -u -c 0, or mknod -m 666 /dev/nvidia-uvm c 511 0" in done.text


def test_wait_does_not_take_a_file_for_a_node(root: Path) -> None:
    (root / "dev/nvidia-uvm").touch()
    done = wait(root, "--timeout", "0.3", *(["--create"] if os.geteuid() == 0 else []))
    assert done.status == 10
    assert "/dev/nvidia-uvm is there and is no device node" in done.text
    assert (root / "dev/nvidia-uvm").read_bytes() == b""


def test_wait_that_cannot_see_is_not_done(root: Path) -> None:
    (root / "proc/devices").write_text("nothing of the kind")
    done = wait(root, "--timeout", "0.3")
    assert done.status == 11
    assert "/proc/devices" in done.text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may make nodes")
def test_an_ordinary_user_is_told_that_create_was_refused(root: Path) -> None:
    done = wait(root, "--create", "--timeout", "0.3")
    assert done.status == 10
    assert "(--create: Operation not permitted)" in done.text


@pytest.mark.system
@needs_root
def test_wait_ends_when_the_last_node_appears(root: Path) -> None:
    nodes = {"nvidiactl": (195, 255), "nvidia-uvm": (511, 0), "nvidia-uvm-tools": (511, 1)}

    def appear() -> None:
        for name, number in nodes.items():
            time.sleep(0.4)
            os.mknod(root / "dev" / name, 0o020666, os.makedev(*number))

    thread = threading.Thread(target=appear)
    thread.start()
    done = wait(root, "--timeout", "20")
    thread.join()
    assert done.status == 0
    assert 1.2 < done.seconds < 15
    assert done.text.startswith("3 control nodes of nvidiactl, nvidia-uvm are there")


@pytest.mark.system
@needs_root
def test_wait_makes_and_replaces_nodes(root: Path) -> None:
    os.mknod(root / "dev/nvidia-uvm", 0o020666, os.makedev(510, 0))
    stale = wait(root, "--timeout", "0.3")
    assert stale.status == 10
    assert "/dev/nvidia-uvm is c 510:0, but nvidia-uvm is c 511:0 now" in stale.text
    done = wait(root, "--create")
    assert done.status == 0
    assert "/dev/nvidia-uvm replaced: it was c 510:0, now c 511:0" in done.text
    assert "/dev/nvidiactl made: c 195:255, mode 666" in done.text
    assert os.stat(root / "dev/nvidia-uvm").st_rdev == os.makedev(511, 0)
    assert wait(root).status == 0
    (root / "proc/devices").write_text("Character devices:\n195 nvidia-frontend\n")
    alone = wait(root, "--need", "nvidia")
    assert alone.status == 0
    assert "/dev/nvidia-uvm was not waited for: --need nvidia-uvm." in alone.text


# --- check -----------------------------------------------------------------------------


def check(*words: str, **environment: str) -> Ran:
    command = [sys.executable, "-m", "seawall", "gpu", "check", *words]
    before = {name: os.environ.get(name) for name in environment}
    ENVIRONMENT.update(environment)
    try:
        return run(command)
    finally:
        for name, value in before.items():
            ENVIRONMENT.pop(name) if value is None else ENVIRONMENT.update({name: value})


@pytest.mark.skipif(has_gpu, reason="this machine has a GPU")
def test_check_says_what_was_promised_and_is_not_there() -> None:
    assert (
        "Nothing here was promised a device" in check(NVIDIA_VISIBLE_DEVICES="void").answered().text
    )
    done = check(NVIDIA_VISIBLE_DEVICES="all")
    assert done.status == 10
    assert done.text.count("\n") == 1, "one sentence"
    assert done.text.startswith("/dev/nvidiactl (and 2 more): No such file or directory (ENOENT)")
    assert "promised by NVIDIA_VISIBLE_DEVICES=all" in done.text
    by_image = "images of CUDA set NVIDIA_VISIBLE_DEVICES=all by themselves"
    assert by_image in done.text
    assert by_image[1:] in seawall("gpu", "check", "--help").text
    named = check(NVIDIA_VISIBLE_DEVICES="0")
    assert (named.status, "images of CUDA" in named.text) == (10, False)
    needed = check("--need", "amd", NVIDIA_VISIBLE_DEVICES="none")
    assert needed.status == 10
    assert "/dev/kfd" in needed.text
