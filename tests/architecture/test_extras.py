# SPDX-License-Identifier: Apache-2.0
"""What is installed without an extra imports without any library."""

import subprocess
import sys

_IMPORT_ALL = """
import pkgutil, sys
from importlib import import_module


class NoLibrary:
    def find_spec(self, name, path=None, target=None):
        room = name.partition(".")[0]
        if room != "seawall" and room not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"{name} is no part of Python", name=name)


sys.meta_path.insert(0, NoLibrary())
count = 0
for room in sys.argv[1:]:
    package = import_module(f"seawall.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
        count += 1
print(count)
"""
ROOMS = ("cli", "views", "findings", "accounts", "readings", "host", "guard", "watcher", "agent")


def test_every_module_of_the_verbs_and_the_guard_imports_without_a_library() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL, *ROOMS], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert int(ran.stdout) > 300
