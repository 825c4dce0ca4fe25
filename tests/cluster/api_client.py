"""Requests to a Kubernetes API server as JSON, over one connection that is kept."""

import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]

TIMEOUT_SECONDS = 60
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class ApiError(Exception):
    """The server's answer was no: ``status`` is HTTP's, ``reason`` the API's own word."""

    def __init__(self, status: int, answer: Object) -> None:
        super().__init__(f"{status} {answer.get('reason')}: {answer.get('message')}")
        self.status = status
        self.reason = answer.get("reason")


class ApiClient:
    """For one thread, closed by ``with``: a second makes its own (``ControlPlane.client``)."""

    def __init__(self, port: int, certificate: str, token: str) -> None:
        self.port, self.token = port, token
        self.context = ssl.create_default_context(cafile=certificate)
        self.connection = self.connect(TIMEOUT_SECONDS)

    def __enter__(self) -> "ApiClient":  # noqa: PYI034 - Self is of 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def connect(self, timeout_seconds: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=timeout_seconds, context=self.context
        )

    def headers(self, kind: str = "application/json") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": kind}

    def request(self, verb: str, path: str, body: Object | None = None, *,
                kind: str = "application/json", **query: object) -> Object:  # fmt: skip
        """Once more on a new connection where the server has closed the one that was idle."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        sent = None if body is None else json.dumps(body)
        idle = self.connection.sock is not None
        if not idle:
            self.connection.close()  # an attempt that failed to connect left it half way
        try:
            answer = self.answer(verb, path, sent, kind)
        except (http.client.HTTPException, OSError):
            if not idle:
                raise
            answer = self.answer(verb, path, sent, kind)
        text = answer.read()
        if answer.headers.get_content_type() != "application/json":
            document = {"message": text.decode(errors="replace")}
        else:
            document = json.loads(text)
        if answer.status >= http.client.BAD_REQUEST:
            raise ApiError(answer.status, document)
        return document

    def answer(self, verb: str, path: str, sent: str | None, kind: str) -> http.client.HTTPResponse:
        """A connection that failed is closed, and opened by the next request."""
        try:
            self.connection.request(verb, path, sent, self.headers(kind))
            return self.connection.getresponse()
        except (http.client.HTTPException, OSError):
            self.connection.close()
            raise

    def get(self, path: str, **query: object) -> Object:
        return self.request("GET", path, **query)

    def items(self, path: str, **query: object) -> list[Object]:
        """A whole list, page by page."""
        found: list[Object] = []
        more: dict[str, object] = {}
        while True:
            page = self.get(path, limit=500, **query, **more)
            found += page["items"]
            more = {"continue": page["metadata"].get("continue")}
            if not more["continue"]:
                return found

    def create(self, path: str, body: Object) -> Object:
        return self.request("POST", path, body)

    def patch(self, path: str, body: Object, kind: str = MERGE) -> Object:
        return self.request("PATCH", path, body, kind=kind)

    def delete(self, path: str, **query: object) -> Object:
        return self.request("DELETE", path, **query)

    def watch(self, path: str, seconds: int, **query: object) -> Iterator[Object]:
        """Events of a list as they happen, until so many seconds are over."""
        query = {"watch": "true", "timeoutSeconds": seconds, **query}
        connection = self.connect(seconds + TIMEOUT_SECONDS)
        try:
            connection.request(
                "GET", f"{path}?{urllib.parse.urlencode(query)}", None, self.headers()
            )
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise ApiError(answer.status, json.loads(answer.read()))
            while line := answer.readline():
                yield json.loads(line)
        finally:
            connection.close()
