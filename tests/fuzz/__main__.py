"""Coverage-guided fuzzing with atheris: ``python -m tests.fuzz SECONDS [TARGET ...]``.

SECONDS of all targets together.  Each is a process of its own; what ends one is left in
``fuzz-findings`` and ends this one with status 1.  Inputs that reach something new go to
``fuzz-corpus``, and by hand, once they are small, to tests/fuzz/corpus.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

MISSING = (
    "atheris is not installed: `make fuzz` does, on Linux on x86-64 with Python 3.11 to 3.14, for"
    " which it has wheels. This is {python} on {machine}: fuzzing is skipped."
)
FINDINGS = Path("fuzz-findings")
NEW = Path("fuzz-corpus")


def main(words: list[str]) -> int:
    if words[0] == "--one":
        return one(words[1], int(words[2]))
    try:
        import atheris  # type: ignore[import-not-found] # noqa: F401 - not everywhere
    except ImportError:
        print(MISSING.format(python=platform.python_version(), machine=platform.machine()))
        return 0
    from tests.fuzz.targets import TARGETS

    names = words[1:] or list(TARGETS)
    FINDINGS.mkdir(exist_ok=True)
    each = max(1, int(words[0]) // len(names))
    failed = []
    for name in names:
        (NEW / name).mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", "--one", name, str(each)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = [line for line in done.stderr.splitlines() if "cov:" in line]
        print(f"{name}: {lines[-1].strip() if lines else done.stderr[-300:]}", flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stdout[-3000:] + done.stderr[-3000:])
    if failed:
        print(f"found something in {', '.join(failed)}: see {FINDINGS}")
    return 1 if failed else 0


def one(name: str, seconds: int) -> int:
    """In a process of its own: atheris does not come back."""
    import atheris

    with atheris.instrument_imports(include=["seawall"]):
        from tests.fuzz.targets import CORPUS, INPUT_MOST_BYTES, TARGETS, tried

        import seawall.readings.oom_log.parser  # noqa: F401 - imported late elsewhere
    target = TARGETS[name]
    atheris.Setup(
        [sys.argv[0], f"-max_total_time={seconds}", f"-max_len={INPUT_MOST_BYTES}", "-timeout=10",
         f"-seed={1 if os.environ.get('CI') else 0}",  # 0: another one in each run
         "-rss_limit_mb=1024", f"-artifact_prefix={FINDINGS}/{name}-", str(NEW / name),
         str(CORPUS / name)],
        lambda data: tried(target, data),
    )  # fmt: skip
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
