"""Completions in the shells themselves, and man pages as man shows them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from release import command_pages
from seawall.cli.main import SERVICES, VERBS

pytest.importorskip("shtab", reason="shtab is missing: make dist")
pytest.importorskip("argparse_manpage", reason="argparse-manpage is missing: make dist")


@pytest.fixture(scope="module")
def completions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("completions")
    found = {}
    for shell, text in command_pages.completions().items():
        found[shell] = folder / shell
        found[shell].write_text(text)
    return found


def offered(shell: str, script: Path, *words: str) -> set[str]:
    """What the shell would offer for the last word."""
    if not (program := shutil.which(shell)):
        pytest.skip(f"{shell} is missing: apt-get install {shell}")
    if shell == "fish":
        line = " ".join(("seawall", *words))
        code = f"source {script}; complete -C '{line}'"
    else:
        code = (
            f'source {script}; COMP_WORDS=(seawall "$@"); COMP_CWORD={len(words)}; '
            "_shtab_seawall; printf '%s\\n' \"${COMPREPLY[@]}\""
        )
    done = subprocess.run(
        [program, *(["--norc"] if shell == "bash" else ["-N"]), "-c", code,
         *(["bash", *words] if shell == "bash" else [])],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_the_shell_offers_verbs_options_and_choices(
    shell: str, completions: dict[str, Path]
) -> None:
    script = completions[shell]
    assert offered(shell, script, "") >= set(VERBS)
    assert offered(shell, script, "mem") == {"memory"}
    assert "--whole" in offered(shell, script, "why", "--w")
    assert "--whole" not in offered(shell, script, "memory", "--w")
    assert offered(shell, script, "guard", "re") == {"replay", "report"}
    assert offered(shell, script, "why", "--color", "a") >= {"auto", "always"}
    assert "--swarm" not in offered(shell, script, "oom", "explain", "--")
    assert len(offered(shell, script, "oom", "explain", "--")) > 3, "options that come late"


def test_zsh_can_read_its_file(completions: dict[str, Path]) -> None:
    if not shutil.which("zsh"):
        pytest.skip("zsh is missing: apt-get install zsh")
    done = subprocess.run(
        ["zsh", "-n", completions["zsh"]], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert completions["zsh"].read_text().startswith("#compdef seawall\n")


def test_each_verb_has_a_page_that_man_shows(tmp_path: Path) -> None:
    if not shutil.which("man"):
        pytest.skip("man is missing: apt-get install man-db")
    pages = command_pages.man_pages()
    assert set(pages) == {"seawall.1", *(f"seawall-{verb}.1" for verb in {**VERBS, **SERVICES})}
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
        done = subprocess.run(
            ["man", "--warnings", "-l", tmp_path / name], capture_output=True, text=True,
            check=False, env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), name
        shown = re.sub(r"\s+", " ", done.stdout)
        assert "EXIT STATUS" in shown, name
        assert "Generated Python Manual" not in shown
    options = command_pages.long_options()
    assert len(options) > 40
    told = "".join(pages.values()).replace("\\-", "-")
    assert {option for option in options if option not in told} == set()


def test_a_packed_page_bears_no_time() -> None:
    packed = command_pages.packed_man_pages()
    assert packed == command_pages.packed_man_pages()
    assert all(place.endswith(".1.gz") for place in packed)
