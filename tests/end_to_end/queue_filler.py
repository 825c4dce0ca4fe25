"""Fills the queues of sockets: ``PROTOCOL server``, ``PROTOCOL client PORT SOCKETS``, and more.

A server answers each question with 60,000 bytes; a client asks and never reads.  ``self SOCKETS``
is both; ``crowd SOCKETS`` opens sockets and puts nothing into them.  It begins when it is told to
on stdin, and says on stdout the port, or how many sockets it has.  It runs in guests as well.
"""

import contextlib
import resource
import select
import socket
import sys
import time

BODY = b"x" * 60_000
DATAGRAM, STREAM = socket.SOCK_DGRAM, socket.SOCK_STREAM


def listener(kind: int) -> socket.socket:
    one = socket.socket(socket.AF_INET, kind)
    one.bind(("127.0.0.1", 0))
    return one


def say(words: object) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def serve_datagrams() -> None:
    one = listener(DATAGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    say(one.getsockname()[1])
    while True:
        _, sender = one.recvfrom(100)
        with contextlib.suppress(OSError):
            one.sendto(BODY, sender)


def serve_streams() -> None:
    one = listener(STREAM)
    one.listen(1000)
    say(one.getsockname()[1])
    others: list[socket.socket] = []
    while True:
        ready, writable, _ = select.select([one], others, [], 0.2)
        if ready:
            other, _ = one.accept()
            other.setblocking(False)
            others.append(other)
        for other in writable:
            with contextlib.suppress(OSError):
                other.send(BODY)
        if not ready:
            time.sleep(0.05)


def ask(kind: int, port: int, count: int) -> None:
    own: list[socket.socket] = []
    for _ in range(count):
        one = socket.socket(socket.AF_INET, kind)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 212_992)
        one.connect(("127.0.0.1", port))
        own.append(one)
    for _ in range(8 if kind == DATAGRAM else 0):
        for number, one in enumerate(own):
            with contextlib.suppress(OSError):
                one.send(b"q")
            if not number % 60:
                time.sleep(0.01)
    say(count)
    time.sleep(600)


def fill_own(count: int) -> None:
    sender = socket.socket(socket.AF_INET, DATAGRAM)
    own = [listener(DATAGRAM) for _ in range(count)]
    for one in own:
        for _ in range(2):
            sender.sendto(BODY, one.getsockname())
    say(own[0].getsockname()[1])
    time.sleep(600)


def crowd(count: int) -> None:
    own = [socket.socket(socket.AF_INET, DATAGRAM) for _ in range(count)]
    for one in own:
        with contextlib.suppress(OSError):
            one.bind(("0.0.0.0", 0))
    say(count)
    time.sleep(600)


def main(protocol: str, role: str, *numbers: str) -> None:
    sys.stdin.readline()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kind = DATAGRAM if protocol == "udp" else STREAM
    if role == "server":
        (serve_datagrams if kind == DATAGRAM else serve_streams)()
    elif role == "client":
        ask(kind, int(numbers[0]), int(numbers[1]))
    elif role == "self":
        fill_own(int(numbers[0]))
    else:
        crowd(int(numbers[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
