//! What a conversation consists of.

use std::fmt;
use std::str::FromStr;

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};

/// Names one conversation for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(pub(crate) i64);

/// Names one message for ever, in all conversations. A later message has a greater id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub(crate) i64);

/// A conversation without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Which.
    pub id: ConversationId,
    /// The first message's beginning, or what the person called it.
    pub title: String,
    /// When its last message was written, in milliseconds since 1970, UTC.
    pub updated_at: i64,
    /// The reply that is being written.
    pub replying: Option<MessageId>,
}

/// A conversation as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Which.
    pub id: ConversationId,
    /// The first message's beginning, or what the person called it.
    pub title: String,
    /// From the first message to the newest one, along its branch.
    pub messages: Vec<Message>,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Which.
    pub id: MessageId,
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// The message that it answers; `None` for the first.
    pub parent: Option<MessageId>,
    /// Who wrote it.
    pub role: Role,
    /// All of it, or as much as there is.
    pub text: String,
    /// Whether it is whole.
    pub state: State,
    /// Why it failed.
    pub error: Option<ReplyError>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// What writing it took.
    pub stats: Option<Stats>,
    /// When it was begun, in milliseconds since 1970, UTC.
    pub created_at: i64,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Whether a message is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All of it is there.
    Complete,
    /// It is being written.
    Streaming,
    /// The person stopped it.
    Stopped,
    /// Perch ended while it was being written.
    Interrupted,
    /// It ended with an error.
    Failed,
}

/// How a reply ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The model has said all.
    Complete,
    /// The person stopped it.
    Stopped,
    /// Something went wrong.
    Failed(ReplyError),
}

/// Why a reply failed, in the words in which it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyError {
    /// The cause, from a closed set of names that the caller keeps.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What writing a reply took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    /// Tokens that the model read.
    pub prompt_tokens: u32,
    /// Tokens that the model wrote.
    pub completion_tokens: u32,
    /// Tokens written a second, from the first one on.
    pub tokens_per_second: f64,
    /// Milliseconds from sending to the first token.
    pub time_to_first_token_ms: f64,
}

macro_rules! id_as_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                i64::column_result(value).map(Self)
            }
        }
    };
}

id_as_text!(ConversationId);
id_as_text!(MessageId);

macro_rules! stored_by_name {
    ($type:ident { $($variant:ident = $name:literal),+ }) => {
        impl $type {
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.name().into())
            }
        }

        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match value.as_str()? {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(FromSqlError::InvalidType),
                }
            }
        }
    };
}

stored_by_name!(Role { User = "user", Assistant = "assistant" });
stored_by_name!(State {
    Complete = "complete",
    Streaming = "streaming",
    Stopped = "stopped",
    Interrupted = "interrupted",
    Failed = "failed"
});
