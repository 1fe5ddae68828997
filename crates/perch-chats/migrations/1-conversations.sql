-- Times are milliseconds since 1970, UTC. Ids are never used twice: a deleted reply must not come back as another.
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- Messages form a tree: a message without a parent starts a conversation, siblings are branches.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    parent INTEGER,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    text TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('complete', 'streaming', 'stopped', 'interrupted', 'failed')),
    error_code TEXT,
    error_message TEXT,
    error_hint TEXT,
    model TEXT,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    tokens_per_second REAL,
    time_to_first_token_ms REAL,
    created_at INTEGER NOT NULL,
    UNIQUE (conversation, id),
    FOREIGN KEY (conversation, parent) REFERENCES messages (conversation, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX messages_by_parent ON messages (conversation, parent);
