"""A worker that never comes back: nobody may read that as "healthy"."""

import json
import os
import subprocess
import sys
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
    "capture": ["capture", "-o", "-", "--for", "2"],
    "wait": ["gpu", "wait"],
    "check": ["gpu", "check"],
    "judged": ["check", "SW108", "--json", "--fail-on", "critical"],
    "repair": ["gpu", "repair", "--host"],
}


# The command itself, whose worker stops as its first act: stopped from outside it could
# already have answered.
STOPPED = """
import os, signal
from seawall.host import watchdog
from seawall.cli.main import console

live = watchdog.work_and_exit
watchdog.work_and_exit = lambda work: (os.kill(os.getpid(), signal.SIGSTOP), live(work))
console()
"""


def run_frozen(words: list[str]) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, *words, "--timeout", "1"],
        capture_output=True, env=ENVIRON, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_frozen_worker_is_never_healthy() -> None:
    with ThreadPoolExecutor(len(FORMS)) as pool:
        done = dict(zip(FORMS, pool.map(run_frozen, FORMS.values()), strict=True))
    status, out, _ = done["npd"]
    assert status == 2, "node-problem-detector's UNKNOWN"
    assert out.startswith(b"SW108: could not judge")
    assert out.count(b"\n") == 1
    schema = json.loads((files("seawall.views") / "schemas/why.json").read_text())
    for form in ("json", "judged"):
        status, out, _ = done[form]
        assert status == 11, form
        document = json.loads(out)
        jsonschema.validate(document, schema)
        assert "no answer within" in document["could_not_see"][0]["why"]
    status, out, _ = done["text"]
    assert status == 0
    assert b"Could not see" in out
    assert b"Nothing fires" not in out
    for form in ("wait", "check", "repair"):
        status, out, _ = done[form]
        assert status == 11, "never a yes"
        assert b"Could not see" in out
    for form in ("pods", "capture"):
        status, out, err = done[form]
        assert (status, out) == (2, b""), form
        assert b"no answer within" in err
