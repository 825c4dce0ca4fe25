"""Verbs in a VM from one interpreter that has imported Seawall: a start takes ten seconds there.

``ASK`` makes the shell's ``ask NAME WORDS``: ``seawall WORDS`` in a process of its own, into
$OUT/NAME.json and $OUT/NAME.err; its status is the shell's.
"""

import os
import pkgutil
import sys
from importlib import import_module

ASK = r"""
python3.11 $JOB/warm_guest.py
ask() { echo "$*" > /run/question; read -r answer < /run/answer; return $answer; }
"""
QUESTION, ANSWER = "/run/question", "/run/answer"


def import_what_verbs_need() -> None:
    for room in ("cli", "views", "findings", "accounts", "readings", "host"):
        package = import_module(f"seawall.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def run(name: str, words: list[str]) -> None:
    """As ``python -m seawall`` would; ends this process."""
    from seawall.cli.main import console

    for descriptor, kind in ((1, "json"), (2, "err")):
        path = f"{os.environ['OUT']}/{name}.{kind}"
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
    sys.argv = ["seawall", *words]
    console()


def serve() -> None:
    while True:
        with open(QUESTION) as asked:
            name, *words = asked.read().split()
        pid = os.fork()
        if not pid:
            run(name, words)
        _, status = os.waitpid(pid, 0)
        with open(ANSWER, "w") as answer:
            answer.write(f"{os.waitstatus_to_exitcode(status)}\n")


if __name__ == "__main__":
    os.mkfifo(QUESTION)
    os.mkfifo(ANSWER)
    if not os.fork():  # no child of the shell, which waits for all of those
        if os.fork():
            os._exit(0)
        import_what_verbs_need()
        serve()
