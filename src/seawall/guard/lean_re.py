# SPDX-License-Identifier: Apache-2.0
"""``re`` for the guard's process: patterns are compiled by a child (1.1 MB less in memory).

The compiler of regular expressions and what it imports (enum, functools, collections) are
larger than all patterns.  A child of the start holds it and answers with the arguments of
``_sre.compile``, from which the interpreter makes the same pattern here; they never leave one
version of Python.  Where that does not work, the real module is taken.
"""

import _sre  # type: ignore[import-not-found] # of the interpreter, without stubs
import marshal
import os
import sys
from typing import Any, BinaryIO

MULTILINE, DOTALL, VERBOSE = 8, 16, 64
Pattern = Match = Any


class _Compiler:
    """The child, for as long as the start lasts."""

    def __init__(self) -> None:
        asked, to_ask = os.pipe()
        answered, to_answer = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(to_ask)
            os.close(answered)
            try:
                with open(asked, "rb") as questions, open(to_answer, "wb") as answers:
                    _serve(questions, answers)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(to_answer)
        self._questions = open(to_ask, "wb")  # noqa: SIM115 - it outlives this function
        self._answers = open(answered, "rb")  # noqa: SIM115

    def ask(self, pattern: str | bytes, flags: int) -> Any:
        """The arguments; EOFError or OSError when it could not tell."""
        marshal.dump((pattern, flags), self._questions)
        self._questions.flush()
        return marshal.load(self._answers)  # noqa: S302 - our own child's

    def close(self) -> None:
        """It ends when nobody can ask any more."""
        self._questions.close()
        self._answers.close()
        os.waitpid(self._pid, 0)


_compiler: _Compiler | None = None


def compile(pattern: str | bytes, flags: int = 0) -> Any:  # noqa: A001 - as in re
    """As ``re.compile``; only before the guard is ready."""
    global _compiler  # noqa: PLW0603 - as a module has no other place for it
    try:
        if _compiler is None:
            _compiler = _Compiler()
        return _sre.compile(*_compiler.ask(pattern, flags))
    except (EOFError, OSError, TypeError, ValueError, RuntimeError):
        return _real().compile(pattern, flags)


def end() -> None:
    """Nothing more will be compiled."""
    global _compiler  # noqa: PLW0603
    if _compiler is not None:
        _compiler.close()
        _compiler = None


def _serve(questions: BinaryIO, answers: BinaryIO) -> None:
    _real()
    name = "re._compiler" if sys.version_info >= (3, 11) else "sre_compile"
    compiler: Any = __import__(name, fromlist=["compile"])
    compiler._sre = _Arguments()  # noqa: SLF001 - which it calls at the end
    while True:
        pattern, flags = marshal.load(questions)  # noqa: S302 - our own parent's
        marshal.dump(compiler.compile(pattern, flags), answers)
        answers.flush()


class _Arguments:
    """``_sre``, but ``compile`` gives back what it was called with."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_sre, name)

    def compile(self, pattern: str | bytes, flags: int, code: list[int], *rest: Any) -> Any:
        """Plain numbers: the compiler's have names."""
        return (pattern, int(flags), [int(word) for word in code], *rest)


def _real() -> Any:
    if sys.modules.get("re") is sys.modules[__name__]:
        del sys.modules["re"]
    return __import__("re")
