"""Replies that would go on for minutes: clients that leave stop theirs, and an endpoint that ends says so."""

import json
import shutil

import openai
import pytest
from conftest import FIXTURES, Served

HELLO = [{"role": "user", "content": "Hi"}]
ENDLESS = {"model": "endless", "messages": HELLO, "temperature": 0, "logit_bias": {"100": 100}}
"""The bias makes one token certain, so that no end token ever comes."""


@pytest.fixture
def endless(tmp_path):
    """A server with a model whose context is too long to be filled."""
    folder = tmp_path / "endless"
    shutil.copytree(FIXTURES / "models" / "qwen3", folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = 65536
    (folder / "config.json").write_text(json.dumps(config))
    served = Served("--models", folder)
    yield served
    served.process.kill()
    served.process.wait()


def test_clients_that_leave_stop_their_replies(endless):
    """More replies than are written at a time: were they not stopped, the last request would wait behind them."""
    client = endless.client()
    for _ in range(16):
        stream = client.chat.completions.create(**ENDLESS, stream=True)
        next(iter(stream))
        stream.close()
    for _ in range(16):
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.3).chat.completions.create(**ENDLESS)
    reply = client.chat.completions.create(**ENDLESS, max_tokens=2)
    assert reply.usage.completion_tokens == 2


def test_an_endpoint_that_ends_says_so_in_its_streams(endless):
    stream = endless.client().chat.completions.create(**ENDLESS, stream=True)
    next(iter(stream))
    endless.stop()
    with pytest.raises(openai.APIError, match="shutting down"):
        for _ in stream:
            pass
