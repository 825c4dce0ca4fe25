# SPDX-License-Identifier: Apache-2.0
"""Parts of the standard library for a process that has no use for all of them: the guard's.

``typing``: annotations are evaluated when a module is imported; here they cost a name each, and
a NamedTuple a third of what ``collections.namedtuple`` makes of it.  ``socket`` and ``signal``:
their kernels in C, of which the others are a comfortable coat.  ``re``: ``lean_re``.  Only what
the guard's modules use is there, so a name that is missing fails at the start and in the tests.
``entry.py`` puts them in their places; no other process does.  1.7 MB less in memory.
"""

import _collections_abc
import _signal  # type: ignore[import-not-found] # of the interpreter, without stubs
import _socket
import sys
from _collections import _tuplegetter  # type: ignore[import-not-found] # what namedtuple uses


class _Anything:
    """Whatever is done with a type, it stays one."""

    def __getitem__(self, key: object) -> "_Anything":
        return self

    def __or__(self, other: object) -> "_Anything":
        return self

    __ror__ = __or__


Any = BinaryIO = Final = Literal = NoReturn = TypeAlias = TypeGuard = _Anything()
TYPE_CHECKING = False


class Protocol:
    """A class like any other."""


class _Named(tuple[object, ...]):
    """What all of them have in common.  Lists and not iterators make the new tuple: of unknown
    length it would leave one in CPython's free list every time.
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def _asdict(self) -> dict[str, object]:
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, **changes: object) -> "_Named":
        return type(self)(**{**self._asdict(), **changes})

    def __repr__(self) -> str:
        words = [f"{name}={value!r}" for name, value in self._asdict().items()]
        return f"{self.__class__.__name__}({', '.join(words)})"


_SCOPE = {"_new": tuple.__new__}


class _Fields(type):
    """Makes such a class of the annotations, with its methods."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], body: dict[str, object]
    ) -> type:  # fmt: skip
        if not bases:
            return super().__new__(mcs, name, bases, body)
        annotations = body.pop("__annotations__", {})
        assert isinstance(annotations, dict)  # noqa: S101 - the compiler made it
        fields = tuple(annotations)
        defaults = {field: body.pop(field) for field in fields if field in body}
        names = ", ".join(fields)
        # As namedtuple does it: arguments are bound as fast as those of any function.
        new = eval(f"lambda _cls, {names}: _new(_cls, ({names},))", _SCOPE)  # noqa: S307 - our own names
        new.__defaults__ = tuple(defaults.values())
        getters = {field: _tuplegetter(place, None) for place, field in enumerate(fields)}
        own = {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__new__": new}
        return type(name, (_Named,), {**body, **getters, **own})


class NamedTuple(metaclass=_Fields):
    """A small stand-in for ``typing.NamedTuple`` that takes less memory."""


def install() -> None:
    """For every import that follows."""
    sys.modules["collections.abc"] = _collections_abc  # as ``collections`` itself says
    sys.modules["typing"] = sys.modules[__name__]
    sys.modules["socket"] = _socket
    sys.modules["signal"] = _signal
    from seawall.guard import lean_re  # noqa: PLC0415 - with this typing

    sys.modules["re"] = lean_re


def uninstall() -> None:
    """In a child of the aide, which needs the libraries whole: for what it imports from here on."""
    from seawall.guard import lean_re  # noqa: PLC0415

    ours = {
        "typing": sys.modules[__name__], "socket": _socket, "signal": _signal, "re": lean_re,
        "collections.abc": _collections_abc,
    }  # fmt: skip
    for name, module in ours.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
