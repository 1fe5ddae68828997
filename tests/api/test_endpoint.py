"""The endpoint as other programs use it: through the real `openai` package, and by hand where that is too polite."""

import socket
import threading

import httpx
import openai
import pytest

HELLO = [{"role": "user", "content": "Hello"}]


def ask(client, **options):
    options = {"model": "qwen3", "messages": HELLO, "temperature": 0, "max_tokens": 24, **options}
    return client.chat.completions.create(**options)


def test_models_are_listed(client):
    assert {model.id for model in client.models.list()} == {"llama", "llama3", "mistral", "qwen2", "qwen2_sharded", "qwen3"}


@pytest.mark.parametrize("model", ["llama", "llama3", "mistral", "qwen2", "qwen2_sharded", "qwen3"])
def test_whole_and_streamed_answers_are_the_same(client, model):
    whole = ask(client, model=model)
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    chunks = list(ask(client, model=model, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert reasons[-1] == whole.choices[0].finish_reason and not any(reasons[:-1])


def test_a_seed_repeats_a_reply_and_another_does_not(client):
    def text(seed):
        return ask(client, temperature=1.5, seed=seed, extra_body={"top_k": 0}).choices[0].message.content

    assert text(7) == text(7)
    assert len({text(seed) for seed in range(4)}) > 1


def test_stop_strings_end_the_text(client):
    text = ask(client).choices[0].message.content
    stop = text[len(text) // 2 :][:2]
    cut = ask(client, stop=[stop])
    assert cut.choices[0].message.content == text[: text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"


def test_a_biased_token_is_never_chosen(client):
    first = ask(client, max_tokens=1, extra_body={"logit_bias": {str(token): -100 for token in range(300)}})
    assert first.usage.completion_tokens == 1


def test_streams_run_side_by_side(client):
    texts = {}

    def stream(name):
        chunks = ask(client, stream=True, max_tokens=60)
        texts[name] = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    threads = [threading.Thread(target=stream, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 4 and len(set(texts.values())) == 1


def test_leaving_a_stream_early_does_no_harm(client):
    for _ in range(5):
        stream = ask(client, stream=True, max_tokens=300)
        next(iter(stream))
        stream.close()
    assert ask(client).choices[0].message.content


def test_a_context_that_would_overflow_is_refused_with_both_numbers(client):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, max_tokens=5000)
    assert refused.value.code == "context_length_exceeded"
    assert "5000" in str(refused.value) and "512" in str(refused.value)


def test_parameters_that_cannot_be_honoured_are_named(client):
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    for name, value in {"tools": [tool], "n": 2, "logprobs": True, "temperature": 9, "response_format": {"type": "json_object"}}.items():
        with pytest.raises(openai.BadRequestError) as refused:
            ask(client, **{name: value})
        assert name in str(refused.value)
    with pytest.raises(openai.BadRequestError, match="mirostat"):
        ask(client, extra_body={"mirostat": 2})


def test_an_unknown_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError, match="nope"):
        ask(client, model="nope")


def test_strangers_stay_out(served):
    with pytest.raises(openai.AuthenticationError):
        list(served.client(api_key="wrong").models.list())
    url, bearer = f"{served.address}/v1/models", {"Authorization": f"Bearer {served.token}"}
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers=bearer).status_code == 200
    assert httpx.get(url, headers={**bearer, "Host": "evil.example"}).status_code == 403
    assert httpx.get(url, headers={**bearer, "Origin": "https://evil.example"}).status_code == 403
    assert httpx.get(f"{served.address}/health").json() == {"status": "ok"}


def test_bodies_that_are_no_request(served):
    url, headers = f"{served.address}/v1/chat/completions", {"Authorization": f"Bearer {served.token}"}
    for body, status in [(b"{ not json", 400), (b"[1, 2]", 400), (b"", 400), (b'{"model": "' + b"x" * (17 << 20) + b'"}', 413)]:
        answer = httpx.post(url, content=body, headers=headers)
        assert answer.status_code == status and answer.json()["error"]["message"]


def test_a_request_that_ends_midway_does_no_harm(served, client):
    host, port = served.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {served.token}\r\nContent-Length: 1000\r\n\r\n"
        connection.sendall(head.encode() + b'{"model": "qw')
    assert ask(client).choices
