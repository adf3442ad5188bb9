"""A server of the OpenAI kind that takes its time.

python slow_server.py SECONDS       prints its port and answers until it is killed
"""

from __future__ import annotations

import asyncio
import json
import sys


async def serve(latency: float) -> None:
    """Answer POST, after the latency, by the schema's first label and two runs of the prompt's words; say the port."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next(
                    int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
                )
                request = json.loads(await reader.readexactly(size))
                await asyncio.sleep(latency)
                body = _answer(request)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                    + body
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def _answer(request: dict) -> bytes:
    words = request["messages"][-1]["content"].split()
    middle, form = len(words) // 2, request.get("response_format", {}).get("json_schema", {})
    label = form.get("schema", {}).get("properties", {}).get("label", {}).get("enum", ["none"])[0]
    said = {"label": label, "quotes": [" ".join(words[middle : middle + 12]), " ".join(words[-60:-50]).upper()]}
    message = {"role": "assistant", "content": json.dumps(said), "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 400, "completion_tokens": 40, "total_tokens": 440}
    answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}
    return json.dumps(answer | {"usage": usage}).encode()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
