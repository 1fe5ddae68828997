"""Another program that uses the endpoint: streams one reply with OpenAI's own package and prints its text."""

import sys

from openai import OpenAI

address, token, model = sys.argv[1:]
client = OpenAI(base_url=address, api_key=token)
assert model in [entry.id for entry in client.models.list()], "the model is not listed"
stream = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "How does a kingfisher dive?"}],
    max_tokens=24,
    stream=True,
    stream_options={"include_usage": True},
)
pieces = 0
usage = None
for chunk in stream:
    usage = chunk.usage or usage
    for choice in chunk.choices:
        if choice.delta.content:
            pieces += 1
            print(choice.delta.content, end="", flush=True)
assert pieces > 5, f"the reply came in {pieces} pieces: it was not streamed"
assert usage is not None and usage.completion_tokens == 24, f"usage: {usage}"
