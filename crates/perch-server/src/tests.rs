//! The endpoint without a network: what it lets in and what it refuses.

use std::net::Ipv4Addr;
use std::path::Path;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use perch_engine::{Catalog, CatalogEntry, DevicePreference, Machine};
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::parameters::ChatRequest;

struct Fixtures;

impl Catalog for Fixtures {
    fn models(&self) -> Vec<CatalogEntry> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/models");
        ["qwen3", "llama3"].map(|id| CatalogEntry { id: id.to_owned(), path: path.join(id) }).to_vec()
    }
}

fn app(token: Option<&str>) -> Router {
    let runtime = Runtime::new(Machine::detect(), DevicePreference::Auto, Arc::new(Fixtures));
    let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
    // The sender is leaked so that the endpoint never closes in a test.
    let closing = Box::leak(Box::new(watch::Sender::new(false))).subscribe();
    router(App { runtime, token: token.map(Into::into), host, closing })
}

fn get(path: &str) -> axum::http::request::Builder {
    Request::get(path).header(header::HOST, "127.0.0.1:11711")
}

async fn answer(router: Router, request: Request<Body>) -> (StatusCode, Value) {
    let response = router.oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()))
}

#[tokio::test]
async fn only_programs_of_this_machine_with_the_token_come_in() {
    let bearer = |token: &str| (header::AUTHORIZATION, format!("Bearer {token}"));
    let host = |host: &str| (header::HOST, host.to_owned());
    let origin = |origin: &str| (header::ORIGIN, origin.to_owned());
    let table = [
        (vec![host("127.0.0.1:11711"), bearer("secret")], 200),
        (vec![host("localhost"), bearer("secret")], 200),
        (vec![host("[::1]:11711"), bearer("secret")], 200),
        (vec![host("localhost"), bearer("secret"), origin("http://localhost:3000")], 200),
        (vec![host("localhost")], 401),
        (vec![host("localhost"), bearer("secre")], 401),
        (vec![host("localhost"), bearer("secret2")], 401),
        (vec![host("evil.example:11711"), bearer("secret")], 403),
        (vec![host("192.168.0.7"), bearer("secret")], 403),
        (vec![bearer("secret")], 403),
        (vec![host("localhost"), bearer("secret"), origin("https://evil.example")], 403),
        (vec![host("localhost"), bearer("secret"), origin("null")], 403),
        (vec![host("localhost"), bearer("secret"), origin("http://localhost.evil.example")], 403),
    ];
    for (headers, expected) in table {
        let mut request = Request::get("/v1/models");
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let (status, body) = answer(app(Some("secret")), request.body(Body::empty()).unwrap()).await;
        assert_eq!(status.as_u16(), expected, "{headers:?} {body}");
        assert_eq!(status.is_success(), body["error"].is_null(), "{body}");
    }
}

#[tokio::test]
async fn health_needs_no_token_and_unknown_paths_say_what_there_is() {
    let (status, body) = answer(app(Some("secret")), get("/health").body(Body::empty()).unwrap()).await;
    assert_eq!((status.as_u16(), &body["status"]), (200, &Value::from("ok")));
    let (status, body) = answer(app(None), get("/v1/embeddings").body(Body::empty()).unwrap()).await;
    assert_eq!(status.as_u16(), 404);
    assert!(body["error"]["message"].as_str().unwrap().contains("/v1/chat/completions"));
}

#[test]
fn each_parameter_is_honoured_or_refused_by_name() {
    let parse = |extra: &str| {
        let body = format!(r#"{{"model": "m", "messages": [{{"role": "user", "content": "hi"}}]{extra}}}"#);
        ChatRequest::parse(body.as_bytes())
    };
    let good = parse(
        r#", "stream": true, "stream_options": {"include_usage": true}, "max_completion_tokens": 7, "seed": -1,
        "temperature": 0.5, "top_k": 3, "stop": "x", "logit_bias": {"5": -100}, "n": 1, "user": "u", "top_p": null,
        "chat_template_kwargs": {"enable_thinking": false}, "response_format": {"type": "text"}"#,
    )
    .unwrap();
    assert!(good.stream && good.include_usage);
    assert_eq!(good.max_tokens, Some(7));
    assert_eq!(good.stop, ["x"]);
    assert_eq!(good.sampling.logit_bias, [(5, -100.0)]);
    assert_eq!(good.sampling.seed, Some(u64::MAX));
    assert_eq!(good.conversation.enable_thinking, Some(false));

    let refused = [
        (r#", "tools": []"#, "tools"),
        (r#", "n": 2"#, "n"),
        (r#", "logprobs": true"#, "logprobs"),
        (r#", "response_format": {"type": "json_object"}"#, "response_format"),
        (r#", "temperature": "hot""#, "temperature"),
        (r#", "max_tokens": -1"#, "max_tokens"),
        (r#", "max_tokens": 1.5"#, "max_tokens"),
        (r#", "max_tokens": 0"#, "max_tokens"),
        (r#", "temperature": -1"#, "temperature"),
        (r#", "top_p": 0"#, "top_p"),
        (r#", "min_p": 2"#, "min_p"),
        (r#", "repetition_penalty": 0"#, "repetition_penalty"),
        (r#", "presence_penalty": 3"#, "presence_penalty"),
        (r#", "frequency_penalty": -3"#, "frequency_penalty"),
        (r#", "logit_bias": {"1": 101}"#, "logit_bias"),
        (r#", "stop": """#, "stop"),
        (r#", "stop": [1]"#, "stop"),
        (r#", "stream": "yes""#, "stream"),
        (r#", "stream_options": {"include_usage": true}"#, "stream_options"),
        (r#", "logit_bias": {"x": 1}"#, "logit_bias"),
        (r#", "chat_template_kwargs": {"x": 1}"#, "chat_template_kwargs.x"),
        (r#", "whatever": 1"#, "whatever"),
    ];
    for (extra, param) in refused {
        let error = parse(extra).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(param), "{error:?}");
        assert_eq!(error.status, StatusCode::BAD_REQUEST);
        assert!(error.message.contains(param), "{error:?}");
    }
}

#[test]
fn messages_are_checked_one_by_one() {
    let parse = |messages: &str| {
        ChatRequest::parse(format!(r#"{{"model": "m", "messages": {messages}}}"#).as_bytes())
    };
    let parts = r#"[{"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]"#;
    let message = &parse(parts).unwrap().conversation.messages[0];
    assert_eq!((message["role"].as_str(), message["content"].as_str()), (Some("system"), Some("ab")));
    let refused = [
        ("[]", "messages"),
        ("3", "messages"),
        ("[3]", "messages[0]"),
        (r#"[{"content": "x"}]"#, "messages[0].role"),
        (r#"[{"role": "robot", "content": "x"}]"#, "messages[0].role"),
        (r#"[{"role": "user"}]"#, "messages[0].content"),
        (r#"[{"role": "user", "content": 5}]"#, "messages[0].content"),
        (r#"[{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]"#, "messages[0].content"),
        (r#"[{"role": "user", "content": "x", "colour": 1}]"#, "messages[0].colour"),
    ];
    for (messages, param) in refused {
        let error = parse(messages).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(param), "{error:?}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_request_get_an_error_in_openais_shape() {
    let post = |body: Body| {
        Request::post("/v1/chat/completions").header(header::HOST, "localhost").body(body).unwrap()
    };
    let huge = format!(r#"{{"model": "{}"}}"#, "x".repeat(MOST_BYTES));
    for (body, expected) in
        [("{ not json".to_owned(), 400), ("[]".to_owned(), 400), (String::new(), 400), (huge, 413)]
    {
        let (status, body) = answer(app(None), post(body.into())).await;
        assert_eq!(status.as_u16(), expected, "{body}");
        assert!(body["error"]["message"].is_string(), "{body}");
    }
    let unknown = r#"{"model": "nope", "messages": [{"role": "user", "content": "hi"}]}"#;
    let (status, body) = answer(app(None), post(unknown.into())).await;
    assert_eq!((status.as_u16(), body["error"]["code"].as_str()), (404, Some("model_not_found")));
    assert!(body["error"]["message"].as_str().unwrap().contains("qwen3, llama3"), "{body}");
}

#[tokio::test]
async fn a_model_answers_the_same_whole_and_streamed() {
    let ask = |stream: bool| {
        let body = format!(
            r#"{{"model": "qwen3", "temperature": 0, "max_tokens": 12, "stream": {stream},
            "messages": [{{"role": "user", "content": "Hi"}}]}}"#
        );
        Request::post("/v1/chat/completions")
            .header(header::HOST, "localhost")
            .body(Body::from(body))
            .unwrap()
    };
    let router = app(None);
    let (status, whole) = answer(router.clone(), ask(false)).await;
    assert_eq!(status.as_u16(), 200, "{whole}");
    assert_eq!(whole["usage"]["completion_tokens"], 12, "{whole}");
    let (_, streamed) = answer(router, ask(true)).await;
    let mut text = String::new();
    let lines: Vec<&str> =
        streamed.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    for line in &lines[..lines.len() - 1] {
        let chunk: Value = serde_json::from_str(line).unwrap();
        text.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
    }
    assert_eq!(lines.last(), Some(&"[DONE]"));
    assert_eq!(text, whole["choices"][0]["message"]["content"].as_str().unwrap());
}

#[tokio::test]
async fn a_taken_port_is_said_to_be_taken() {
    let runtime = Runtime::new(Machine::detect(), DevicePreference::Auto, Arc::new(Fixtures));
    let config = |port| ServerConfig { host: IpAddr::V4(Ipv4Addr::LOCALHOST), port, token: None };
    let first = serve(config(0), runtime.clone()).await.unwrap();
    let failure = serve(config(first.address().port()), runtime.clone()).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PortInUse);
    let port = first.address().port();
    first.shutdown().await;
    serve(config(port), runtime).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn pages_of_this_machine_may_ask_beforehand_and_read_the_answer() {
    let ask = |origin: &str| {
        Request::options("/v1/chat/completions")
            .header(header::HOST, "localhost:11711")
            .header(header::ORIGIN, origin)
            .header(header::ACCESS_CONTROL_REQUEST_METHOD, "POST")
            .header(header::ACCESS_CONTROL_REQUEST_HEADERS, "authorization,content-type")
            .body(Body::empty())
            .unwrap()
    };
    let local = "http://localhost:3000";
    let response = app(Some("secret")).oneshot(ask(local)).await.unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], local);
    assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_HEADERS], "authorization,content-type");
    let response = app(Some("secret")).oneshot(ask("https://evil.example")).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[tokio::test]
async fn a_switch_that_the_model_does_not_have_is_refused() {
    let body =
        r#"{"model": "llama3", "messages": [{"role": "user", "content": "hi"}], "enable_thinking": false}"#;
    let request = Request::post("/v1/chat/completions")
        .header(header::HOST, "localhost")
        .body(Body::from(body))
        .unwrap();
    let (status, body) = answer(app(None), request).await;
    assert_eq!((status.as_u16(), body["error"]["param"].as_str()), (400, Some("enable_thinking")), "{body}");
}

#[tokio::test]
async fn one_model_can_be_asked_for() {
    let (status, body) = answer(app(None), get("/v1/models/qwen3").body(Body::empty()).unwrap()).await;
    assert_eq!((status.as_u16(), body["id"].as_str()), (200, Some("qwen3")));
    let (status, body) = answer(app(None), get("/v1/models/a/b").body(Body::empty()).unwrap()).await;
    assert_eq!((status.as_u16(), body["error"]["code"].as_str()), (404, Some("model_not_found")));
}

#[tokio::test]
async fn the_endpoint_ends_although_a_client_sits_on_half_a_request() {
    use std::io::{Read, Write};
    let runtime = Runtime::new(Machine::detect(), DevicePreference::Auto, Arc::new(Fixtures));
    let config = ServerConfig { host: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0, token: None };
    let server = serve(config, runtime).await.unwrap();
    let client = std::net::TcpStream::connect(server.address()).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n";
    // The endpoint says that it waits for the body, so it is in the middle of the request.
    let waiting = tokio::task::spawn_blocking(move || {
        let mut client = client;
        client.write_all(head.as_bytes()).unwrap();
        client.read_exact(&mut [0; 12]).unwrap();
        client
    });
    let client = waiting.await.unwrap();
    server.shutdown().await;
    drop(client);
}

#[tokio::test]
async fn an_open_endpoint_is_for_this_machine_alone() {
    let runtime = Runtime::new(Machine::detect(), DevicePreference::Auto, Arc::new(Fixtures));
    let config = ServerConfig { host: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0, token: None };
    assert_eq!(serve(config, runtime).await.unwrap_err().code, ErrorCode::InvalidRequest);
}
