//! Replies while they are written: from the engine's events to the database and to whoever watches.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perch_chats::{Chats, ConversationId, Ending, Message, MessageId, Role, State, Stats};
use perch_engine::{Conversation, Event, Generation};
use perch_model::ErrorCode;
use serde_json::{Value, json};
use tauri::ipc::Channel;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::ipc::types::{AppError, ReplyEvent, tokens};

/// Text that comes faster than this is shown together: more often costs work and shows nothing more.
const BATCH: Duration = Duration::from_millis(25);

/// The replies that are being written now.
#[derive(Default)]
pub(crate) struct Replies {
    live: Mutex<HashMap<MessageId, Arc<Live>>>,
}

/// A reply that is being written.
pub(crate) struct Live {
    reply: MessageId,
    conversation: ConversationId,
    /// Held while something is kept and shown, so that a new watcher misses nothing and hears nothing twice.
    watchers: Mutex<Vec<Channel<ReplyEvent>>>,
    stop: Notify,
    ended: Notify,
}

impl Replies {
    /// Registers a reply before anything can ask for it.
    pub(crate) fn begin(&self, reply: MessageId, conversation: ConversationId) -> Arc<Live> {
        let live = Arc::new(Live {
            reply,
            conversation,
            watchers: Mutex::default(),
            stop: Notify::new(),
            ended: Notify::new(),
        });
        self.all().insert(reply, live.clone());
        live
    }

    /// Whether a reply is being written in `conversation`.
    pub(crate) fn is_replying(&self, conversation: ConversationId) -> bool {
        self.all().values().any(|live| live.conversation == conversation)
    }

    /// Sends a snapshot of `reply` and then what follows, if it is still being written.
    pub(crate) fn watch(
        &self,
        chats: &Chats,
        reply: MessageId,
        watcher: Channel<ReplyEvent>,
    ) -> Result<(), AppError> {
        let live = self.all().get(&reply).cloned();
        let mut watchers = live.as_ref().map(|live| live.watchers());
        let message = chats.message(reply)?;
        // A watcher that has gone away already needs nothing.
        if watcher.send(ReplyEvent::Snapshot { message: message.into() }).is_ok()
            && let Some(watchers) = &mut watchers
        {
            watchers.push(watcher);
        }
        Ok(())
    }

    /// Stops a reply; one that has ended stays as it is.
    pub(crate) fn stop(&self, reply: MessageId) {
        if let Some(live) = self.all().get(&reply) {
            live.stop.notify_one();
        }
    }

    /// Stops the reply in `conversation`, or all of them, and waits until what was written is kept.
    pub(crate) async fn stop_and_wait(&self, conversation: Option<ConversationId>) {
        let concerned: Vec<_> = self
            .all()
            .values()
            .filter(|live| conversation.is_none_or(|conversation| live.conversation == conversation))
            .cloned()
            .collect();
        for live in concerned {
            live.stop.notify_one();
            live.ended.notified().await;
        }
    }

    fn end(&self, live: &Live) {
        self.all().remove(&live.reply);
        live.ended.notify_one();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<MessageId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn watchers(&self) -> MutexGuard<'_, Vec<Channel<ReplyEvent>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a reply to its end, whatever that is: `start` loads the model and begins the generation.
pub(crate) async fn write(
    replies: &Replies,
    chats: &Chats,
    live: &Live,
    start: impl Future<Output = Result<Generation, AppError>>,
) {
    let mut pen =
        Pen { chats, live, waiting: String::new(), tokens: 0, first: None, stats: Meter::default() };
    let ending = tokio::select! {
        written = async { pen.write(start.await?).await } => match written {
            Ok(()) => Ending::Complete,
            Err(error) => Ending::Failed(error.into()),
        },
        () = live.stop.notified() => Ending::Stopped,
    };
    pen.finish(ending);
    replies.end(live);
}

/// Keeps and shows one reply.
struct Pen<'a> {
    chats: &'a Chats,
    live: &'a Live,
    /// Text that is not kept and shown yet.
    waiting: String,
    tokens: usize,
    first: Option<Instant>,
    stats: Meter,
}

/// What is known about the effort so far.
#[derive(Default)]
struct Meter {
    began: Option<Instant>,
    prompt_tokens: usize,
    /// The engine's own numbers, once it has given them.
    complete: Option<Stats>,
}

impl Pen<'_> {
    async fn write(&mut self, mut generation: Generation) -> Result<(), AppError> {
        self.stats.began = Some(Instant::now());
        let mut batch = tokio::time::interval(BATCH);
        batch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = generation.recv() => match event {
                    Some(Event::Queued { ahead }) => self.show(&ReplyEvent::Queued { ahead: tokens(ahead) }),
                    Some(Event::Prefill { done, of }) => {
                        self.stats.prompt_tokens = of;
                        self.show(&ReplyEvent::Prefill { done: tokens(done), of: tokens(of) });
                    }
                    Some(Event::Piece { text, tokens }) => {
                        self.first.get_or_insert_with(Instant::now);
                        self.tokens += tokens.len();
                        self.waiting.push_str(&text);
                    }
                    Some(Event::Done { usage, timings, .. }) => {
                        let decode = timings.decode.as_secs_f64();
                        self.stats.complete = Some(Stats {
                            prompt_tokens: tokens(usage.prompt_tokens),
                            completion_tokens: tokens(usage.completion_tokens),
                            tokens_per_second: per_second(usage.completion_tokens, decode).unwrap_or(0.0),
                            time_to_first_token_ms: (timings.queued + timings.prefill).as_secs_f64() * 1e3,
                        });
                        return Ok(());
                    }
                    Some(Event::Failed(failure)) => return Err(failure.into()),
                    None => {
                        let message = "the model ended without finishing its reply";
                        return Err(AppError::new(ErrorCode::Unavailable, message, Some("Send the message again.")));
                    }
                },
                _ = batch.tick(), if !self.waiting.is_empty() => self.keep_and_show()?,
            }
        }
    }

    /// Keeps the waiting text and then shows it: what a person has seen is there after a crash.
    fn keep_and_show(&mut self) -> Result<(), AppError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut watchers = self.live.watchers();
        self.chats.append(self.live.reply, &self.waiting)?;
        let event = ReplyEvent::Text {
            append: mem::take(&mut self.waiting),
            tokens_per_second: self.speed(),
            tokens: tokens(self.tokens),
        };
        watchers.retain(|watcher| watcher.send(event.clone()).is_ok());
        Ok(())
    }

    fn show(&self, event: &ReplyEvent) {
        self.live.watchers().retain(|watcher| watcher.send(event.clone()).is_ok());
    }

    fn finish(mut self, mut ending: Ending) {
        if let Err(error) = self.keep_and_show() {
            tracing::error!(message = error.message, "the end of a reply could not be kept");
            ending = Ending::Failed(error.into());
        }
        let stats = self.stats.complete.or_else(|| self.stats_so_far());
        let watchers = mem::take(&mut *self.live.watchers());
        if let Err(error) = self.chats.finish(self.live.reply, &ending, stats) {
            // Also where the conversation was deleted meanwhile.
            tracing::warn!(%error, "how a reply ended could not be kept");
        }
        let Ok(message) = self.chats.message(self.live.reply) else { return };
        let message = as_ended(message, ending);
        let event = match message.state {
            State::Failed => ReplyEvent::Failed { message: message.into() },
            _ => ReplyEvent::Done { message: message.into() },
        };
        for watcher in watchers {
            // A window that has gone away reads the reply from the database.
            drop(watcher.send(event.clone()));
        }
    }

    fn speed(&self) -> Option<f64> {
        self.first.and_then(|first| per_second(self.tokens, first.elapsed().as_secs_f64()))
    }

    /// For a reply that does not come to its end.
    fn stats_so_far(&self) -> Option<Stats> {
        let (began, first) = (self.stats.began?, self.first?);
        Some(Stats {
            prompt_tokens: tokens(self.stats.prompt_tokens),
            completion_tokens: tokens(self.tokens),
            tokens_per_second: self.speed().unwrap_or(0.0),
            time_to_first_token_ms: first.duration_since(began).as_secs_f64() * 1e3,
        })
    }
}

/// `message` with its ending, also where that could not be kept.
fn as_ended(message: Message, ending: Ending) -> Message {
    if message.state != State::Streaming {
        return message;
    }
    match ending {
        Ending::Complete => Message { state: State::Complete, ..message },
        Ending::Stopped => Message { state: State::Stopped, ..message },
        Ending::Failed(error) => Message { state: State::Failed, error: Some(error), ..message },
    }
}

/// The first token comes out of the prompt; it is the later ones that take `seconds`.
fn per_second(tokens: usize, seconds: f64) -> Option<f64> {
    (tokens > 1 && seconds > 0.0).then(|| (tokens - 1) as f64 / seconds)
}

/// What the model reads: the messages up to the one that it answers.
///
/// Replies without any text are left out, and messages of the person that then follow one another become one:
/// many templates insist that the roles alternate.
pub(crate) fn conversation(path: &[Message]) -> Conversation {
    let mut turns: Vec<(Role, String)> = Vec::new();
    for message in path {
        match turns.last_mut() {
            _ if message.text.trim().is_empty() => {}
            Some((role, text)) if *role == message.role => {
                text.push_str("\n\n");
                text.push_str(&message.text);
            }
            _ => turns.push((message.role, message.text.clone())),
        }
    }
    Conversation::new(turns.into_iter().map(|(role, text)| as_json(role, &text)).collect())
}

fn as_json(role: Role, text: &str) -> Value {
    let role = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    json!({ "role": role, "content": text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chats() -> (tempfile::TempDir, Chats) {
        let folder = tempfile::tempdir().expect("a folder");
        let chats = Chats::open(&folder.path().join("chats.sqlite3")).expect("a new file");
        (folder, chats)
    }

    /// A channel, and what was sent through it.
    fn watcher() -> (Channel<ReplyEvent>, Arc<Mutex<Vec<Value>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = heard.clone();
        let channel = Channel::new(move |body| {
            let event = body.deserialize().expect("an event");
            sink.lock().expect("no panic").push(event);
            Ok(())
        });
        (channel, heard)
    }

    fn kinds(heard: &Mutex<Vec<Value>>) -> Vec<String> {
        let heard = heard.lock().expect("no panic");
        heard.iter().map(|event| event["kind"].as_str().expect("a kind").to_owned()).collect()
    }

    #[test]
    fn the_model_reads_alternating_turns_without_empty_replies() {
        let (_folder, chats) = chats();
        let (id, first) = chats.start("one").unwrap();
        let failed = chats.begin_reply(first, None).unwrap();
        let error = AppError::new(ErrorCode::Internal, "it broke", None);
        chats.finish(failed, &Ending::Failed(error.into()), None).unwrap();
        let second = chats.say(id, Some(failed), "two").unwrap();
        let stopped = chats.begin_reply(second, None).unwrap();
        chats.append(stopped, "half an ans").unwrap();
        chats.finish(stopped, &Ending::Stopped, None).unwrap();
        let third = chats.say(id, Some(stopped), "three").unwrap();
        let messages = conversation(&chats.path(third).unwrap()).messages;
        assert_eq!(
            Value::from(messages),
            json!([
                { "role": "user", "content": "one\n\ntwo" },
                { "role": "assistant", "content": "half an ans" },
                { "role": "user", "content": "three" },
            ])
        );
    }

    #[tokio::test]
    async fn a_reply_that_cannot_begin_fails_in_words() {
        let (_folder, chats) = chats();
        let (id, question) = chats.start("hello").unwrap();
        let reply = chats.begin_reply(question, None).unwrap();
        let replies = Replies::default();
        let live = replies.begin(reply, id);
        assert!(replies.is_replying(id));
        let (channel, heard) = watcher();
        replies.watch(&chats, reply, channel).unwrap();
        let error = AppError::new(ErrorCode::NotFound, "there is no model", Some("Add one."));
        write(&replies, &chats, &live, async { Err(error.clone()) }).await;
        assert_eq!(kinds(&heard), ["snapshot", "failed"]);
        assert_eq!(chats.message(reply).unwrap().error.map(AppError::from), Some(error));
        assert!(!replies.is_replying(id));

        let (late, heard_late) = watcher();
        replies.watch(&chats, reply, late).unwrap();
        assert_eq!(kinds(&heard_late), ["snapshot"]);
        assert_eq!(heard_late.lock().unwrap()[0]["message"]["state"], "failed");
    }

    #[tokio::test]
    async fn a_reply_can_be_stopped_before_its_model_is_there() {
        let (_folder, chats) = chats();
        let (id, question) = chats.start("hello").unwrap();
        let reply = chats.begin_reply(question, None).unwrap();
        let replies = Replies::default();
        let live = replies.begin(reply, id);
        let (channel, heard) = watcher();
        replies.watch(&chats, reply, channel).unwrap();
        tokio::join!(write(&replies, &chats, &live, std::future::pending()), replies.stop_and_wait(Some(id)),);
        assert_eq!(kinds(&heard), ["snapshot", "done"]);
        assert_eq!(chats.message(reply).unwrap().state, State::Stopped);
    }
}
