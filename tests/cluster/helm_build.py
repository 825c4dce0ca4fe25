"""Builds helm of tests/cluster/helm: ``python -m tests.cluster.helm_build``.

As the control plane is built (``plane_build``): from Go modules that are locked here, into a cache
whose key is of the lock.  Exit status 75: it cannot be built here, for there is no Go.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster.plane_build import CACHE, CANNOT, NoGo, PlaneProblem

MODULE = Path(__file__).parent / "helm"
COMMAND = "helm.sh/helm/v4/cmd/helm"


def program() -> Path:
    """Where it is, once it is built."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes() + b"\0")
    return CACHE / f"helm-{digest.hexdigest()[:16]}" / "helm"


def built() -> Path | None:
    path = program()
    return path if path.exists() else None


def build() -> Path:
    """From the cache where it is there; two that want it at once build it once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "helm.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return built() or compiled()


def compiled() -> Path:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise NoGo("no Go: helm for the tests of the chart is not built")
    path = program()
    path.parent.mkdir(exist_ok=True)
    text = (MODULE / "go.mod").read_text()
    (version,) = re.findall(r"\bhelm\.sh/helm/v4 (v\S+)(?: // indirect)?$", text, re.MULTILINE)
    print(f"building helm {version}: some minutes cold on two cores", flush=True)
    began = time.monotonic()
    done = subprocess.run(
        ["nice", go, "build", "-mod=readonly", "-trimpath", "-ldflags",
         f"-s -w -X helm.sh/helm/v4/internal/version.version={version}",
         "-o", f"{path}.new", COMMAND],
        cwd=MODULE, env={**os.environ, "CGO_ENABLED": "0"}, check=False,
    )  # fmt: skip
    if done.returncode:
        raise PlaneProblem(f"go build of helm ended with {done.returncode}, see above")
    os.replace(f"{path}.new", path)
    print(f"built {path} in {time.monotonic() - began:.0f} s", flush=True)
    return path


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    try:
        print(build())
    except PlaneProblem as problem:
        print(problem, file=sys.stderr)
        return CANNOT if isinstance(problem, NoGo) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
