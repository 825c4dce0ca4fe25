"""A worker that never comes back: nobody may read that as "healthy"."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import jsonschema

ROOT = Path(__file__).parents[2]
ENVIRON = os.environ | {"PYTHONPATH": str(ROOT / "src")}
FORMS = {
    "npd": ["check", "SW108", "--npd"],
    "json": ["why", "--json", "--fail-on", "critical"],
    "text": ["why"],
    "pods": ["pods", "--json"],
    "capture": ["capture", "-o", "-", "--for", "2", "--timeout", "3"],
}


def run_frozen(words: list[str]) -> tuple[int, bytes, bytes]:
    """Run it, and stop its worker the moment there is one."""
    timeout = [] if "--timeout" in words else ["--timeout", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "seawall", *words, *timeout],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRON,
    )  # fmt: skip
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    deadline = time.monotonic() + 10
    worker = 0
    while not worker and time.monotonic() < deadline and process.poll() is None:
        found = Path(children).read_text().split()
        worker = int(found[0]) if found else 0
    assert worker, process.communicate()
    os.kill(worker, signal.SIGSTOP)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_frozen_worker_is_never_healthy() -> None:
    with ThreadPoolExecutor(len(FORMS)) as pool:
        done = dict(zip(FORMS, pool.map(run_frozen, FORMS.values()), strict=True))
    status, out, _ = done["npd"]
    assert status == 2, "node-problem-detector's UNKNOWN"
    assert out.startswith(b"SW108: could not judge")
    assert out.count(b"\n") == 1
    status, out, _ = done["json"]
    assert status == 11
    document = json.loads(out)
    schema = json.loads((files("seawall.views") / "schemas/why.json").read_text())
    jsonschema.validate(document, schema)
    assert "no answer within" in document["could_not_see"][0]["why"]
    status, out, _ = done["text"]
    assert status == 0
    assert b"Could not see" in out
    assert b"Nothing fires" not in out
    for form in ("pods", "capture"):
        status, out, err = done[form]
        assert (status, out) == (2, b""), form
        assert b"no answer within" in err
