"""A clock that stands still until a test moves it, for a module that asks ``time.monotonic``."""

from types import ModuleType, SimpleNamespace

import pytest


class Clock:
    """Seconds in ``now``."""

    def __init__(self) -> None:
        self.now = 1000.0

    @classmethod
    def of(cls, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> "Clock":
        """All that the module knows of time."""
        clock = cls()
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
        return clock
