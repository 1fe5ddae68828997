"""The commands that other tools build on, against the reference's answers."""

import json
import shutil

import pytest
from conftest import FIXTURES, Served, perch

MODELS = sorted(path.name for path in (FIXTURES / "models").iterdir())


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_greedy_tokens_are_the_references(name):
    folder = FIXTURES / "models" / name
    for prompt in json.loads((folder / "golden.json").read_text())["prompts"]:
        ids = ",".join(map(str, prompt["ids"]))
        _, logits = perch("logits", folder, "--tokens", ids, "--top", 20, "--json")
        assert logits["argmax"] == prompt["argmax"]
        assert [token for token, _ in logits["top"]] == prompt["top"]["ids"]
        for (_, found), expected in zip(logits["top"], prompt["top"]["values"]):
            assert abs(found - expected) < 1e-3
        _, generated = perch("generate", folder, "--tokens", ids, "--max-tokens", len(prompt["greedy"]), "--greedy", "--json")
        assert generated == {"tokens": prompt["greedy"]}


@pytest.mark.parametrize("name", sorted(path.name for path in (FIXTURES / "mlx").iterdir()))
def test_quantised_models_answer_as_their_weights_say(name):
    folder = FIXTURES / "mlx" / name
    undecided = 0.5
    for prompt in json.loads((folder / "golden.json").read_text())["prompts"]:
        answer = prompt["float32"]
        ids = ",".join(map(str, prompt["ids"]))
        _, logits = perch("logits", folder, "--tokens", ids, "--json")
        # Activations are rounded too, which may turn what the reference itself is nearly undecided about.
        for found, expected, margin in zip(logits["argmax"], answer["argmax"], answer["argmax_margin"], strict=True):
            assert found == expected or margin < undecided
        count = len(answer["greedy"])
        _, generated = perch("generate", folder, "--tokens", ids, "--max-tokens", count, "--greedy", "--json")
        assert len(generated["tokens"]) == count
        sure = next((step for step, margin in enumerate(answer["greedy_margin"]) if margin < undecided), count)
        assert generated["tokens"][:sure] == answer["greedy"][:sure]


def test_templates_render_or_say_why_not(tmp_path):
    golden = json.loads((FIXTURES / "templates" / "golden.json").read_text())
    seen = set()
    for name in ["Qwen-Qwen3-0.6B.jinja", "google-gemma-2-2b-it.jinja", "mistralai-Mistral-Nemo-Instruct-2407.jinja"]:
        template = golden["templates"][name]
        for key, expected in template["results"].items():
            messages = tmp_path / "messages.json"
            messages.write_text(json.dumps({**golden["conversations"][key], **template["special_tokens"]}))
            _, found = perch("render", "--template", FIXTURES / "templates" / name, "--messages", messages, "--json")
            seen.add(next(iter(found)))
            if "text" in expected:
                assert found == {"text": expected["text"]}, (name, key)
            elif expected["raised_by_template"]:
                assert found == {"error": expected["error"]}, (name, key)
            else:
                assert "error" in found, (name, key)
    assert seen == {"text", "error"}


def test_bench_measures():
    _, found = perch("bench", FIXTURES / "models" / "qwen3", "--prompt", 64, "--generate", 16, "--json")
    assert set(found) == {"prefill_tokens_per_second", "decode_tokens_per_second", "time_to_first_token_ms", "peak_memory_bytes", "device"}
    assert found["device"] == "cpu" and all(found[key] > 0 for key in found if key != "device")
    _, four = perch("bench", FIXTURES / "models" / "qwen3", "--prompt", 64, "--generate", 16, "--parallel", 4, "--json")
    assert set(four) == set(found)


def broken(tmp_path, change):
    folder = tmp_path / "a model with spaces 🐦"
    shutil.copytree(FIXTURES / "models" / "qwen2_sharded", folder)
    (folder / "._model-00001-of-00002.safetensors").write_bytes(b"\0\5\x16\7" * 100)
    change(folder)
    return folder


def cut(folder):
    shard = folder / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1000])


def lie(folder):
    shard = folder / "model-00001-of-00002.safetensors"
    shard.write_bytes((2**63).to_bytes(8, "little") + shard.read_bytes()[8:])


def family(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "parrot"}))


def shape(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 96}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), ["tokenizer.json", "missing"]),
        (lambda folder: (folder / "config.json").unlink(), ["config.json", "missing"]),
        (lambda folder: (folder / "model.safetensors.index.json").unlink(), ["index.json", "missing"]),
        (lambda folder: (folder / "model-00002-of-00002.safetensors").unlink(), ["model-00002-of-00002.safetensors", "missing"]),
        (cut, ["model-00002-of-00002.safetensors", "cut short", "165912"]),
        (lie, ["model-00001-of-00002.safetensors", "9223372036854775808"]),
        (family, ["parrot", "llama"]),
        (shape, ["mlp", "96"]),
    ],
)
def test_broken_folders_are_told_apart(tmp_path, change, words):
    folder = broken(tmp_path, change)
    _, verdict = perch("inspect", folder, "--json")
    assert not verdict["runnable"]
    problems = " ".join(problem["message"] for problem in verdict["problems"])
    assert all(word in problems for word in words), problems
    assert all(problem["hint"] for problem in verdict["problems"])


def test_a_whole_folder_is_whole_with_companion_files_around(tmp_path):
    _, verdict = perch("inspect", broken(tmp_path, lambda folder: None), "--json")
    assert verdict["runnable"] and verdict["problems"] == []


def test_an_empty_folder_is_no_model(tmp_path):
    code, found = perch("inspect", tmp_path, "--json", check=False)
    assert code == 1 and found["error"]["code"] == "not_a_model" and found["error"]["hint"]


def test_weights_that_are_not_numbers_are_noticed(tmp_path):
    folder = tmp_path / "nan"
    shutil.copytree(FIXTURES / "models" / "qwen3", folder)
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-4000:] = b"\xff\x7f" * 2000
    weights.write_bytes(data)
    code, found = perch("generate", folder, "--tokens", "1,2", "--max-tokens", 4, "--greedy", "--json", check=False)
    assert code == 1 and found["error"]["code"] == "damaged"


@pytest.mark.parametrize("template", ["{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}", "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "{{ raise_exception('no') }}", "{% if %}"])
def test_templates_that_raise_loop_or_recurse_end_with_an_error(tmp_path, template):
    (tmp_path / "t.jinja").write_text(template)
    (tmp_path / "m.json").write_text('{"messages": [{"role": "user", "content": "x"}]}')
    _, found = perch("render", "--template", tmp_path / "t.jinja", "--messages", tmp_path / "m.json", "--json")
    assert found["error"]


def test_a_folder_that_vanishes_while_loaded_does_no_harm(tmp_path):
    folder = tmp_path / "gone"
    shutil.copytree(FIXTURES / "models" / "qwen3", folder)
    served = Served("--models", folder)
    try:
        ask = {"model": "gone", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "max_tokens": 8}
        before = served.client().chat.completions.create(**ask)
        shutil.rmtree(folder)
        after = served.client().chat.completions.create(**ask)
        assert after.choices[0].message.content == before.choices[0].message.content
    finally:
        served.stop()


def test_a_taken_port_is_said_to_be_taken(served):
    port = served.address.rsplit(":", 1)[1]
    from conftest import PERCH
    import subprocess

    done = subprocess.run([PERCH, "serve", "--port", port, "--models", FIXTURES / "models"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and port in done.stderr and "hint:" in done.stderr
