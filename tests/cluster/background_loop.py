"""What goes on beside a test: a thread that begins and ends with its ``with``."""

import threading
from typing import TypeVar

Loop = TypeVar("Loop", bound="BackgroundLoop")


class BackgroundLoop:
    """``run`` is the subclass's, and returns when ``ended`` is set."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self: Loop) -> Loop:  # noqa: PYI019 - Self is of 3.11
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def run(self) -> None:
        raise NotImplementedError
