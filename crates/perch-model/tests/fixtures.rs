//! The reference's answers on the fixtures: tokens, streamed text, chats, templates, specs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perch_model::template::{ChatTemplate, Conversation, SpecialTokens};
use perch_model::tokenizer::Tokenizer;
use perch_model::{Model, ModelError};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn folders(path: &str) -> Vec<PathBuf> {
    let mut list: Vec<_> =
        std::fs::read_dir(fixtures().join(path)).unwrap().map(|entry| entry.unwrap().path()).collect();
    list.sort();
    list
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

#[test]
fn every_model_opens_and_is_runnable() {
    for folder in folders("models").into_iter().chain(folders("mlx")) {
        let model = Model::open(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let golden = json(&folder.join("golden.json"));
        if let Some(parameters) = golden.get("num_parameters") {
            let verdict = perch_model::inspect(&folder).unwrap();
            assert!(verdict.runnable, "{}: {:?}", folder.display(), verdict.problems);
            assert_eq!(verdict.parameters, parameters.as_u64().unwrap(), "{}", folder.display());
        }
        assert!(!model.defaults.end_tokens.is_empty(), "{}", folder.display());
    }
}

#[test]
fn tokenizers_give_the_references_ids_and_text() {
    for folder in folders("tokenizers") {
        let tokenizer = Tokenizer::open(&folder).unwrap();
        let golden = json(&folder.join("golden.json"));
        for case in golden["cases"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let at = format!("{} {text:?}", folder.display());
            assert_eq!(tokenizer.encode(text, true).unwrap(), ids(&case["ids"]), "{at}");
            assert_eq!(tokenizer.encode(text, false).unwrap(), ids(&case["ids_plain"]), "{at}");
            assert_eq!(tokenizer.decode(&ids(&case["ids"]), true).unwrap(), case["decode"], "{at}");
            assert_eq!(tokenizer.decode(&ids(&case["ids"]), false).unwrap(), case["decode_raw"], "{at}");
        }
    }
}

#[test]
fn text_streams_as_early_as_characters_allow() {
    let mut wrong = Vec::new();
    for folder in folders("tokenizers") {
        let tokenizer = Tokenizer::open(&folder).unwrap();
        let golden = json(&folder.join("golden.json"));
        let cases = golden["cases"].as_array().unwrap().iter().chain(golden["random"].as_array().unwrap());
        for case in cases {
            let Some(expected) = case["stream"].as_array() else { continue };
            let ids = ids(&case["ids"]);
            let mut stream = tokenizer.stream();
            let mut pieces: Vec<String> =
                ids.iter().map(|&id| stream.push(id).unwrap().unwrap_or_default()).collect();
            let rest = stream.finish().unwrap();
            if let Some(last) = pieces.last_mut() {
                last.push_str(&rest);
            }
            if pieces != expected.iter().map(|piece| piece.as_str().unwrap()).collect::<Vec<_>>() {
                wrong.push(format!("{} {ids:?}\n  got  {pieces:?}\n  want {expected:?}", folder.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
}

#[test]
fn chats_of_the_models_render_and_encode_to_the_references_tokens() {
    let mut chats = 0;
    for folder in folders("models") {
        let model = Model::open(&folder).unwrap();
        for chat in json(&folder.join("golden.json"))["chats"].as_array().unwrap() {
            let at = format!("{} {chat}", folder.display());
            let conversation = conversation(chat.get("input").unwrap_or(chat));
            let rendered = model.template.as_ref().unwrap().render(&conversation);
            if chat.get("error").is_some_and(|error| !error.is_null()) {
                assert!(rendered.is_err(), "{at}");
                continue;
            }
            let text = rendered.unwrap();
            assert_eq!(text, chat["text"].as_str().unwrap(), "{at}");
            assert_eq!(
                model.tokenizer.as_ref().unwrap().encode(&text, false).unwrap(),
                ids(&chat["ids"]),
                "{at}"
            );
            chats += 1;
        }
    }
    assert!(chats > 10);
}

fn conversation(value: &Value) -> Conversation {
    Conversation {
        messages: value["messages"].as_array().unwrap().clone(),
        tools: value.get("tools").and_then(Value::as_array).cloned(),
        add_generation_prompt: value.get("add_generation_prompt").and_then(Value::as_bool).unwrap_or(false),
        enable_thinking: value.get("enable_thinking").and_then(Value::as_bool),
        continue_final_message: value.get("continue_final_message").and_then(Value::as_bool).unwrap_or(false),
    }
}

/// Templates with the number of conversations that differ from the reference: each a case in which Python raises
/// a `TypeError` (a loop over `None`, a generator as JSON) or escapes for HTML, and this renderer does not.
const KNOWN_DIFFERENCES: [(&str, usize); 6] = [
    ("CohereForAI-c4ai-command-r-plus-tool_use.jinja", 8),
    ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", 9),
    ("NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja", 10),
    ("llama-cpp-deepseek-r1.jinja", 3),
    ("meetkai-functionary-medium-v3.1.jinja", 3),
    ("mistralai-Ministral-3-14B-Reasoning-2512.jinja", 1),
];

#[test]
fn templates_render_as_the_reference_does() {
    let golden = json(&fixtures().join("templates/golden.json"));
    let conversations = &golden["conversations"];
    let now: Vec<u32> = ids(&golden["now"]);
    let now = chrono::NaiveDate::from_ymd_opt(now[0] as i32, now[1], now[2])
        .and_then(|day| day.and_hms_opt(now[3], now[4], now[5]))
        .unwrap();
    let (mut right, mut wrong) = (0, Vec::new());
    for (name, template) in golden["templates"].as_object().unwrap() {
        let source = std::fs::read_to_string(fixtures().join("templates").join(name)).unwrap();
        let special = |key: &str| template["special_tokens"][key].as_str().map(str::to_owned);
        let special = SpecialTokens {
            bos_token: special("bos_token"),
            eos_token: special("eos_token"),
            pad_token: special("pad_token"),
            unk_token: special("unk_token"),
        };
        let compiled = ChatTemplate::new(source, special).map(|template| template.at(now));
        for (key, expected) in template["results"].as_object().unwrap() {
            let rendered = match &compiled {
                Ok(compiled) => compiled.render(&conversation(&conversations[key])),
                Err(error) => Err(ModelError::Tokenizer(error.to_string())),
            };
            let ok = match (&rendered, expected.get("text"), expected.get("error")) {
                (Ok(text), Some(expected), _) => text == expected,
                (Err(ModelError::Template { raised: Some(raised), .. }), None, Some(error)) => {
                    expected["raised_by_template"] == false || raised == error
                }
                (Err(ModelError::Template { raised: None, .. }), None, _) => {
                    expected["raised_by_template"] == false
                }
                _ => false,
            };
            if ok {
                right += 1;
            } else {
                wrong.push((name, format!("{name} {key}\n  got  {rendered:?}\n  want {expected}")));
            }
        }
    }
    let mut counts = BTreeMap::new();
    for (name, _) in &wrong {
        *counts.entry(name.as_str()).or_insert(0) += 1;
    }
    let wrong: Vec<_> = wrong.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(counts, BTreeMap::from(KNOWN_DIFFERENCES), "{right} right:\n{}", wrong.join("\n"));
}

#[test]
fn hostile_templates_fail_soon_and_small() {
    let cases = [
        ("endless", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
        ("a long range", "{% for a in range(10**9) %}{% endfor %}"),
        ("a long text", "{{ 'a' * 10**9 }}"),
        (
            "doubling",
            "{% set ns = namespace(x='aa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        ),
        (
            "doubling by +",
            "{%- set n = namespace(x='aa') -%}{%- for i in range(99) -%}{%- set n.x = n.x + n.x -%}{%- endfor -%}",
        ),
        ("squaring", "{% set x = 'a' * 9999 %}{% set y = x.replace('a', x) %}{{ y.replace('a', y) }}"),
        ("squaring by filter", "{% set x = 'a' * 9999 %}{{ x | replace('a', x) | replace('a', x) }}"),
        ("a macro that calls itself", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}"),
        ("a macro that doubles", "{% macro f(x, y='b') %}{{ f(x ~ x) }}{% endmacro %}{{ f('aa') }}"),
        ("much output", "{% set x = 'a' * 9999999 %}{% for i in range(9999) %}{{ x }}{% endfor %}"),
    ];
    for (name, source) in cases {
        let rendered = ChatTemplate::new(source.to_owned(), SpecialTokens::default())
            .and_then(|template| template.render(&Conversation::user("Hello")));
        assert!(matches!(rendered, Err(ModelError::Template { raised: None, .. })), "{name}");
    }
}
