"""Every parameter that the endpoint cannot honour is refused by name."""

import json

import httpx
import pytest

HELLO = [{"role": "user", "content": "Hi"}]


def refused(served, body):
    headers = {"Authorization": f"Bearer {served.token}"}
    response = httpx.post(f"{served.address}/v1/chat/completions", json=body, headers=headers, timeout=60)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("response_format", {"type": "json_object"}),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("n", 2),
        ("reasoning_effort", "high"),
        ("temperature", "hot"),
        ("temperature", -1),
        ("top_p", 2),
        ("top_k", 1.5),
        ("max_tokens", 0),
        ("max_tokens", "many"),
        ("stop", [1]),
        ("stop", ["x"] * 100),
        ("logit_bias", {"one": 1}),
        ("logit_bias", {"1000000": 1}),
        ("seed", "x"),
        ("stream", 1),
        ("stream_options", {"include_usage": True}),
        ("messages", []),
        ("messages", "Hi"),
        ("model", 3),
        ("model", None),
        ("an_invention", 1),
    ],
)
def test_a_parameter_is_named(served, parameter, value):
    error = refused(served, {"model": "qwen3", "messages": HELLO, "max_tokens": 1, parameter: value})
    assert error["param"] == parameter and parameter in error["message"]


@pytest.mark.parametrize(
    ("message", "at"),
    [
        ({"role": "narrator", "content": "x"}, "messages[1].role"),
        ({"content": "x"}, "messages[1].role"),
        ({"role": "user"}, "messages[1].content"),
        ({"role": "user", "content": 3}, "messages[1].content"),
        ({"role": "user", "content": "x", "mood": "good"}, "messages[1].mood"),
    ],
)
def test_a_bad_message_is_pointed_at(served, message, at):
    error = refused(served, {"model": "qwen3", "messages": [*HELLO, message]})
    assert error["param"] == at and at in error["message"]


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"3", b'{"model":', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(served, body):
    headers = {"Authorization": f"Bearer {served.token}"}
    response = httpx.post(f"{served.address}/v1/chat/completions", content=body, headers=headers, timeout=60)
    assert response.status_code == 400 and response.json()["error"]["message"]
