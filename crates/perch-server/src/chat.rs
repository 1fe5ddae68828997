//! `POST /v1/chat/completions`, whole and streamed.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use perch_engine::{Device, Event, FinishReason, Generation, Priority, Prompt, Request, Usage};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::App;
use crate::error::ApiError;
use crate::parameters::ChatRequest;

/// A stream that has been silent for so long gets a comment, so that nobody on the way takes it for dead.
const SILENCE: Duration = Duration::from_secs(10);

/// Answers a chat request.
pub(crate) async fn completions(
    State(app): State<App>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message = format!("the body is larger than {} MB", crate::MOST_BYTES >> 20);
            ApiError::request(StatusCode::PAYLOAD_TOO_LARGE, message)
        }
        status => ApiError::request(status, "the body could not be read to its end"),
    })?;
    let asked = ChatRequest::parse(&body)?;
    let handle = app.runtime.load(&asked.model).await?;
    let info = handle.info();
    if asked.conversation.enable_thinking.is_some()
        && !info.template.as_ref().is_some_and(|template| template.knows_thinking())
    {
        let message =
            format!("enable_thinking does nothing in {}: its chat template has no such switch", info.id);
        return Err(ApiError::parameter("enable_thinking", message));
    }
    // Everything else about the settings was checked before the model was there.
    let sampling = asked.sampling.resolve(&info.defaults, info.vocab_size);
    let sampling = sampling.map_err(|failure| ApiError::parameter("logit_bias", failure.message))?;
    let reply = Reply::new(asked.model, info.choice.device);
    let request = Request {
        prompt: Prompt::Chat(asked.conversation),
        sampling,
        stop: asked.stop,
        max_tokens: asked.max_tokens,
        ignore_end: false,
        priority: Priority::Client,
    };
    // Rendering and tokenizing a long prompt takes a while, which would hold up other connections.
    let started = tokio::task::spawn_blocking(move || handle.generate(request)).await;
    let generation = started.map_err(|_| {
        ApiError::request(StatusCode::INTERNAL_SERVER_ERROR, "the engine broke off while reading the request")
    })??;
    if asked.stream {
        let (sender, receiver) = mpsc::channel(64);
        tokio::spawn(reply.stream(generation, asked.include_usage, sender, app));
        let keep_alive = KeepAlive::new().interval(SILENCE).text("still working");
        return Ok(Sse::new(ReceiverStream::new(receiver)).keep_alive(keep_alive).into_response());
    }
    reply.whole(generation, app).await.map(IntoResponse::into_response)
}

/// What all parts of an answer share.
struct Reply {
    id: String,
    created: u64,
    model: String,
    /// A seed gives the same reply for as long as this stays the same.
    fingerprint: String,
}

impl Reply {
    fn new(model: String, device: Device) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let fingerprint = format!("perch-{}-{}", env!("CARGO_PKG_VERSION"), device.as_str());
        Self { id: format!("chatcmpl-{:x}", now.as_nanos()), created: now.as_secs(), model, fingerprint }
    }

    async fn whole(self, mut generation: Generation, mut app: App) -> Result<Json<Value>, ApiError> {
        let mut content = String::new();
        loop {
            let event = tokio::select! {
                event = generation.recv() => event,
                _ = app.closing.wait_for(|closing| *closing) => return Err(closing()),
            };
            match event {
                Some(Event::Piece { text, .. }) => content.push_str(&text),
                Some(Event::Done { reason, usage, .. }) => {
                    return Ok(Json(json!({
                        "id": self.id,
                        "object": "chat.completion",
                        "created": self.created,
                        "model": self.model,
                        "system_fingerprint": self.fingerprint,
                        "choices": [{
                            "index": 0,
                            "message": { "role": "assistant", "content": content },
                            "logprobs": null,
                            "finish_reason": reason_name(reason),
                        }],
                        "usage": usage_object(usage),
                    })));
                }
                Some(Event::Failed(failure)) => return Err(failure.into()),
                Some(Event::Queued { .. } | Event::Prefill { .. }) => {}
                None => return Err(closing()),
            }
        }
    }

    /// Sends chunks until the reply ends or nobody listens; then the generation is dropped, which stops it.
    async fn stream(
        self,
        mut generation: Generation,
        include_usage: bool,
        sender: mpsc::Sender<Result<SseEvent, Infallible>>,
        mut app: App,
    ) {
        let send = |data: Value| {
            let sender = sender.clone();
            async move { sender.send(Ok(SseEvent::default().data(data.to_string()))).await.is_ok() }
        };
        if !send(self.chunk(json!({ "role": "assistant", "content": "" }), None, include_usage)).await {
            return;
        }
        loop {
            let event = tokio::select! {
                event = generation.recv() => event,
                () = sender.closed() => return,
                _ = app.closing.wait_for(|closing| *closing) => None,
            };
            let going_on = match event {
                Some(Event::Piece { text, .. }) if text.is_empty() => true,
                Some(Event::Piece { text, .. }) => {
                    send(self.chunk(json!({ "content": text }), None, include_usage)).await
                }
                Some(Event::Done { reason, usage, .. }) => {
                    let mut open = send(self.chunk(json!({}), Some(reason), include_usage)).await;
                    if include_usage {
                        let mut last = self.chunk(json!({}), None, false);
                        last["choices"] = json!([]);
                        last["usage"] = usage_object(usage);
                        open = open && send(last).await;
                    }
                    if open {
                        drop(sender.send(Ok(SseEvent::default().data("[DONE]"))).await);
                    }
                    return;
                }
                Some(Event::Failed(failure)) => {
                    send(ApiError::from(failure).body()).await;
                    return;
                }
                Some(Event::Queued { .. } | Event::Prefill { .. }) => true,
                None => {
                    send(closing().body()).await;
                    return;
                }
            };
            if !going_on {
                return;
            }
        }
    }

    fn chunk(&self, delta: Value, reason: Option<FinishReason>, include_usage: bool) -> Value {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": [{
                "index": 0,
                "delta": delta,
                "logprobs": null,
                "finish_reason": reason.map(reason_name),
            }],
        });
        if include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

fn reason_name(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
    }
}

fn usage_object(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    })
}

/// The endpoint or the model is being switched off.
fn closing() -> ApiError {
    ApiError {
        kind: "server_error",
        ..ApiError::request(
            StatusCode::SERVICE_UNAVAILABLE,
            "Perch is shutting down the model or the endpoint",
        )
    }
}
