//! Conversations on disk: one SQLite file.
//!
//! Messages form a tree, so that a message written anew makes a branch instead of destroying what was there.
//! A conversation is shown along the branch of its newest message.
//! A reply is kept piece by piece while it is written; what was kept outlives the process at any moment.

mod error;
mod message;
mod title;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use rusqlite_migration::{M, Migrations};

pub use error::ChatsError;
pub use message::{
    Conversation, ConversationId, Ending, Message, MessageId, ReplyError, Role, State, Stats, Summary,
};

/// All conversations. Calls take well under a millisecond and may come from any thread.
#[derive(Debug)]
pub struct Chats {
    connection: Mutex<Connection>,
}

impl Chats {
    /// Opens the file at `path`, or makes it. Replies that were being written when Perch ended are marked
    /// interrupted. A damaged file, or one that a newer Perch wrote, is left as it is.
    ///
    /// # Errors
    /// The file cannot be opened, is damaged, or comes from a newer version.
    pub fn open(path: &Path) -> Result<Self, ChatsError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        // Before anything is written: nothing that follows may make a damaged file worse.
        check(&connection, path)?;
        // Without full synchronisation a commit outlives the process, though not always a power cut;
        // with it, every piece of a reply would wait for the disk.
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection, path)?;
        let interrupted = connection.execute(
            "UPDATE messages SET state = ?1 WHERE state = ?2",
            params![State::Interrupted, State::Streaming],
        )?;
        if interrupted > 0 {
            tracing::info!(interrupted, "some replies were cut off when Perch ended last time");
        }
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// All conversations, the one written in last first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn list(&self) -> Result<Vec<Summary>, ChatsError> {
        let connection = self.lock();
        let mut query = connection.prepare_cached(
            "SELECT id, title, updated_at,
                    (SELECT max(m.id) FROM messages m WHERE m.conversation = c.id AND m.state = 'streaming')
             FROM conversations c ORDER BY updated_at DESC, id DESC",
        )?;
        let rows = query.query_map([], |row| {
            Ok(Summary {
                id: row.get(0)?,
                title: row.get(1)?,
                updated_at: row.get(2)?,
                replying: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// One conversation, along the branch of its newest message.
    ///
    /// # Errors
    /// There is none of that id, or the database cannot be read.
    pub fn get(&self, id: ConversationId) -> Result<Conversation, ChatsError> {
        let connection = self.lock();
        let title = connection
            .query_row("SELECT title FROM conversations WHERE id = ?1", [id], |row| row.get(0))
            .optional()?
            .ok_or(ChatsError::NotFound("conversation"))?;
        let newest: Option<MessageId> =
            connection
                .query_row("SELECT max(id) FROM messages WHERE conversation = ?1", [id], |row| row.get(0))?;
        let messages = newest.map_or(Ok(Vec::new()), |newest| path_to(&connection, newest))?;
        Ok(Conversation { id, title, messages })
    }

    /// One message.
    ///
    /// # Errors
    /// There is none of that id, or the database cannot be read.
    pub fn message(&self, id: MessageId) -> Result<Message, ChatsError> {
        self.lock()
            .query_row(&format!("SELECT {COLUMNS} FROM messages WHERE id = ?1"), [id], message)
            .optional()?
            .ok_or(ChatsError::NotFound("message"))
    }

    /// The messages from the first of the conversation to `id`, both included.
    ///
    /// # Errors
    /// There is none of that id, or the database cannot be read.
    pub fn path(&self, id: MessageId) -> Result<Vec<Message>, ChatsError> {
        let path = path_to(&self.lock(), id)?;
        if path.is_empty() { Err(ChatsError::NotFound("message")) } else { Ok(path) }
    }

    /// Begins a conversation with the person's first message, and calls it by that message's beginning.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn start(&self, text: &str) -> Result<(ConversationId, MessageId), ChatsError> {
        self.write(|transaction| {
            let now = now();
            transaction.execute(
                "INSERT INTO conversations (title, created_at, updated_at) VALUES (?1, ?2, ?2)",
                params![title::from_first_message(text), now],
            )?;
            let conversation = ConversationId(transaction.last_insert_rowid());
            let message = insert(transaction, conversation, None, Role::User, text, State::Complete, None)?;
            Ok((conversation, message))
        })
    }

    /// Keeps what the person says after `parent`, or at the beginning of another branch where there is no parent.
    ///
    /// # Errors
    /// The conversation or the parent is not there, or the database cannot be written.
    pub fn say(
        &self,
        conversation: ConversationId,
        parent: Option<MessageId>,
        text: &str,
    ) -> Result<MessageId, ChatsError> {
        self.write(|transaction| {
            insert(transaction, conversation, parent, Role::User, text, State::Complete, None)
        })
    }

    /// Begins an empty reply to `parent`, written by `model`.
    ///
    /// # Errors
    /// The parent is not there, or the database cannot be written.
    pub fn begin_reply(&self, parent: MessageId, model: Option<&str>) -> Result<MessageId, ChatsError> {
        self.write(|transaction| {
            let conversation = transaction
                .query_row("SELECT conversation FROM messages WHERE id = ?1", [parent], |row| row.get(0))
                .optional()?
                .ok_or(ChatsError::NotFound("message"))?;
            insert(transaction, conversation, Some(parent), Role::Assistant, "", State::Streaming, model)
        })
    }

    /// Adds to a reply that is being written. Once this returns, the piece is there after a crash.
    ///
    /// # Errors
    /// The reply has ended or was deleted, or the database cannot be written.
    pub fn append(&self, reply: MessageId, piece: &str) -> Result<(), ChatsError> {
        let connection = self.lock();
        let changed = connection
            .prepare_cached("UPDATE messages SET text = text || ?2 WHERE id = ?1 AND state = 'streaming'")?
            .execute(params![reply, piece])?;
        if changed == 1 { Ok(()) } else { Err(missing_or_ended(&connection, reply)?) }
    }

    /// Ends a reply; its text stays.
    ///
    /// # Errors
    /// The reply has ended already or was deleted, or the database cannot be written.
    pub fn finish(&self, reply: MessageId, ending: &Ending, stats: Option<Stats>) -> Result<(), ChatsError> {
        let (state, error) = match ending {
            Ending::Complete => (State::Complete, None),
            Ending::Stopped => (State::Stopped, None),
            Ending::Failed(error) => (State::Failed, Some(error)),
        };
        self.write(|transaction| {
            let conversation: Option<ConversationId> = transaction
                .query_row(
                    "UPDATE messages SET state = ?2, error_code = ?3, error_message = ?4, error_hint = ?5,
                        prompt_tokens = ?6, completion_tokens = ?7, tokens_per_second = ?8,
                        time_to_first_token_ms = ?9
                     WHERE id = ?1 AND state = 'streaming' RETURNING conversation",
                    params![
                        reply,
                        state,
                        error.map(|error| &error.code),
                        error.map(|error| &error.message),
                        error.and_then(|error| error.hint.as_ref()),
                        stats.map(|stats| stats.prompt_tokens),
                        stats.map(|stats| stats.completion_tokens),
                        stats.map(|stats| stats.tokens_per_second),
                        stats.map(|stats| stats.time_to_first_token_ms),
                    ],
                    |row| row.get(0),
                )
                .optional()?;
            match conversation {
                Some(conversation) => touch(transaction, conversation),
                None => Err(missing_or_ended(transaction, reply)?),
            }
        })
    }

    /// Calls a conversation something else. An empty title gives it the one from its first message again.
    ///
    /// # Errors
    /// There is none of that id, or the database cannot be written.
    pub fn rename(&self, id: ConversationId, title: &str) -> Result<(), ChatsError> {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        self.write(|transaction| {
            let title = if title.is_empty() {
                let first: Option<String> = transaction
                    .query_row(
                        "SELECT text FROM messages WHERE conversation = ?1 ORDER BY id LIMIT 1",
                        [id],
                        |row| row.get(0),
                    )
                    .optional()?;
                title::from_first_message(&first.unwrap_or_default())
            } else {
                title
            };
            let changed = transaction
                .execute("UPDATE conversations SET title = ?2 WHERE id = ?1", params![id, title])?;
            if changed == 1 { Ok(()) } else { Err(ChatsError::NotFound("conversation")) }
        })
    }

    /// Deletes a conversation with all its messages.
    ///
    /// # Errors
    /// There is none of that id, or the database cannot be written.
    pub fn delete(&self, id: ConversationId) -> Result<(), ChatsError> {
        let deleted = self.lock().execute("DELETE FROM conversations WHERE id = ?1", [id])?;
        if deleted == 1 { Ok(()) } else { Err(ChatsError::NotFound("conversation")) }
    }

    fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, ChatsError>,
    ) -> Result<T, ChatsError> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// A thread that panicked with the connection left no half transaction: dropping one rolls it back.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The columns that [`message`] reads.
const COLUMNS: &str = "id, conversation, parent, role, text, state, error_code, error_message, error_hint,
    model, prompt_tokens, completion_tokens, tokens_per_second, time_to_first_token_ms, created_at";

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    let error = match row.get::<_, Option<String>>("error_code")? {
        Some(code) => {
            Some(ReplyError { code, message: row.get("error_message")?, hint: row.get("error_hint")? })
        }
        None => None,
    };
    let stats = match row.get("prompt_tokens")? {
        Some(prompt_tokens) => Some(Stats {
            prompt_tokens,
            completion_tokens: row.get("completion_tokens")?,
            tokens_per_second: row.get("tokens_per_second")?,
            time_to_first_token_ms: row.get("time_to_first_token_ms")?,
        }),
        None => None,
    };
    Ok(Message {
        id: row.get("id")?,
        conversation: row.get("conversation")?,
        parent: row.get("parent")?,
        role: row.get("role")?,
        text: row.get("text")?,
        state: row.get("state")?,
        error,
        model: row.get("model")?,
        stats,
        created_at: row.get("created_at")?,
    })
}

/// From the root to `id`; empty when there is no such message. A parent is always older than its child.
fn path_to(connection: &Connection, id: MessageId) -> Result<Vec<Message>, ChatsError> {
    let mut query = connection.prepare_cached(&format!(
        "WITH RECURSIVE path (step) AS (
             SELECT ?1 UNION SELECT parent FROM messages JOIN path ON id = step WHERE parent IS NOT NULL
         )
         SELECT {COLUMNS} FROM messages WHERE id IN path ORDER BY id"
    ))?;
    let messages = query.query_map([id], message)?.collect::<Result<_, _>>()?;
    Ok(messages)
}

fn insert(
    transaction: &Transaction<'_>,
    conversation: ConversationId,
    parent: Option<MessageId>,
    role: Role,
    text: &str,
    state: State,
    model: Option<&str>,
) -> Result<MessageId, ChatsError> {
    touch(transaction, conversation)?;
    let inserted = transaction.execute(
        "INSERT INTO messages (conversation, parent, role, text, state, model, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![conversation, parent, role, text, state, model, now()],
    );
    match inserted {
        Ok(_) => Ok(MessageId(transaction.last_insert_rowid())),
        // The conversation is there, so it is the parent that is not, or that belongs to another one.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
            Err(ChatsError::NotFound("message"))
        }
        Err(error) => Err(error.into()),
    }
}

fn touch(transaction: &Transaction<'_>, conversation: ConversationId) -> Result<(), ChatsError> {
    let changed = transaction
        .execute("UPDATE conversations SET updated_at = ?2 WHERE id = ?1", params![conversation, now()])?;
    if changed == 1 { Ok(()) } else { Err(ChatsError::NotFound("conversation")) }
}

fn missing_or_ended(connection: &Connection, reply: MessageId) -> Result<ChatsError, ChatsError> {
    let there: bool =
        connection
            .query_row("SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1)", [reply], |row| row.get(0))?;
    Ok(if there { ChatsError::Ended } else { ChatsError::NotFound("message") })
}

fn now() -> i64 {
    // A clock before 1970 is wrong anyway; such messages sort first.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn check(connection: &Connection, path: &Path) -> Result<(), ChatsError> {
    let damaged = |reason: String| ChatsError::Damaged { path: path.to_owned(), reason };
    let verdict: Result<String, _> = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(verdict) => Err(damaged(verdict)),
        Err(error) if is_damage(&error) => Err(damaged(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), ChatsError> {
    use rusqlite_migration::{Error, MigrationDefinitionError};
    let migrations = Migrations::new(vec![M::up(include_str!("../migrations/1-conversations.sql"))]);
    let path = || PathBuf::from(path);
    migrations.to_latest(connection).map_err(|error| match error {
        Error::MigrationDefinition(MigrationDefinitionError::DatabaseTooFarAhead) => {
            ChatsError::NewerVersion { path: path() }
        }
        Error::RusqliteError { err, .. } => ChatsError::Database(err),
        other => ChatsError::Damaged { path: path(), reason: other.to_string() },
    })
}
