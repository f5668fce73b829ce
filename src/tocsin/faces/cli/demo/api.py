"""API: the demo as any client of Tocsin, over HTTP and with a project's key."""

from typing import Any, Final

import msgspec

from tocsin.faces.cli.demo.missed import Missed
from tocsin.wire.http import HttpClient, Reply

TIMEOUT_S: Final = 60.0


class Api:
    """Calls that must succeed: anything but a 2xx is Missed."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._headers = {"x-api-key": key, "content-type": "application/json"}
        self._http = HttpClient()

    async def post(self, path: str, **body: Any) -> Any:
        return await self._call("POST", path, msgspec.json.encode(body))

    async def get(self, path: str) -> Any:
        return await self._call("GET", path, b"")

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _call(self, method: str, path: str, body: bytes) -> Any:
        answer = await self._http.request(
            method, self._url + path, headers=self._headers, body=body, timeout_s=TIMEOUT_S
        )
        if not isinstance(answer, Reply):
            raise Missed(f"{method} {path} got no answer: {answer.code}")
        if answer.status >= 300:
            said = answer.body.decode(errors="replace")
            raise Missed(f"{method} {path} was answered {answer.status}: {said}")
        return msgspec.json.decode(answer.body)
