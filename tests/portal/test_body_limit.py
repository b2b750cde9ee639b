"""Long bodies are kept out before anything reads them to its end."""

import json

import pytest
from asgiref.testing import ApplicationCommunicator

from portal.body_limit import LIMIT, BodyLimit

pytestmark = pytest.mark.asyncio


class Reader:
    """An application that reads the whole body and answers how long it was; -1 when it was cut off."""

    async def __call__(self, scope, receive, send):
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                size, more = -1, False
            else:
                size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(size).encode()})


async def answer(chunks, length=None, language="en", **address):
    headers = [(b"accept-language", language.encode())]
    headers += [] if length is None else [(b"content-length", str(length).encode())]
    page = ApplicationCommunicator(BodyLimit(Reader()), {"type": "http", "method": "POST", "headers": headers, **address})
    for number, chunk in enumerate(chunks, 1):
        await page.send_input({"type": "http.request", "body": chunk, "more_body": number < len(chunks)})
    start, body = await page.receive_output(), await page.receive_output()
    return start["status"], body["body"]


async def test_what_is_short_enough_passes():
    assert await answer([b"abc", b"de"], 5) == (200, b"5")


async def test_a_body_that_says_it_is_too_long_is_not_read():
    status, body = await answer([b"x"], LIMIT + 1)
    assert (status, json.loads(body)["status"]) == (413, 413)


async def test_a_refusal_is_in_the_readers_language():
    _status, body = await answer([b"x"], LIMIT + 1, language="zh-hans")
    assert json.loads(body)["detail"] == "请求正文最多 2,097,152 字节。"


async def test_a_body_that_does_not_say_is_cut_off():
    assert await answer([b"x" * (LIMIT // 2)] * 3) == (200, b"-1")


@pytest.mark.parametrize("address", [{"path": "/jobs/a\0b/"}, {"path": "/jobs/", "query_string": b"q=a%00b"}])
async def test_a_nul_character_in_the_address_is_refused(address):
    status, body = await answer([b""], **address)
    assert (status, json.loads(body)["status"]) == (400, 400)
