//! Conversations as the app uses them.

use std::fs;
use std::path::PathBuf;

use perch_chats::{Chats, ChatsError, Ending, ReplyError, Role, State, Stats};
use tempfile::TempDir;

fn fresh() -> (TempDir, PathBuf, Chats) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chats.sqlite3");
    let chats = Chats::open(&path).expect("a new file");
    (folder, path, chats)
}

const STATS: Stats =
    Stats { prompt_tokens: 12, completion_tokens: 3, tokens_per_second: 20.5, time_to_first_token_ms: 80.0 };

#[test]
fn a_conversation_comes_back_whole_after_a_restart() {
    let (_folder, path, chats) = fresh();
    let (id, question) = chats.start("  What is a\nperch? ").unwrap();
    let reply = chats.begin_reply(question, Some("tiny")).unwrap();
    assert_eq!(chats.list().unwrap()[0].replying, Some(reply));
    chats.append(reply, "A place ").unwrap();
    chats.append(reply, "to sit 🐦").unwrap();
    chats.finish(reply, &Ending::Complete, Some(STATS)).unwrap();
    drop(chats);

    let chats = Chats::open(&path).unwrap();
    let summaries = chats.list().unwrap();
    assert_eq!(summaries.len(), 1);
    assert_eq!((summaries[0].title.as_str(), summaries[0].replying), ("What is a perch?", None));
    let conversation = chats.get(id).unwrap();
    let [asked, answered] = conversation.messages.as_slice() else { panic!("two messages") };
    assert_eq!((asked.role, asked.text.as_str()), (Role::User, "  What is a\nperch? "));
    assert_eq!((answered.role, answered.text.as_str()), (Role::Assistant, "A place to sit 🐦"));
    assert_eq!((answered.state, answered.stats), (State::Complete, Some(STATS)));
    assert_eq!(answered.model.as_deref(), Some("tiny"));
    assert_eq!(answered.parent, Some(asked.id));
}

#[test]
fn endings_are_kept_and_an_ended_reply_does_not_grow() {
    let (_folder, _path, chats) = fresh();
    let error = ReplyError { code: "io".into(), message: "It broke.".into(), hint: Some("Mend it.".into()) };
    for (ending, state, kept) in [
        (Ending::Complete, State::Complete, None),
        (Ending::Stopped, State::Stopped, None),
        (Ending::Failed(error.clone()), State::Failed, Some(error.clone())),
    ] {
        let (_, question) = chats.start("Hello").unwrap();
        let reply = chats.begin_reply(question, None).unwrap();
        chats.append(reply, "Hi").unwrap();
        chats.finish(reply, &ending, None).unwrap();
        let message = chats.message(reply).unwrap();
        assert_eq!((message.state, message.error, message.text.as_str()), (state, kept, "Hi"));
        assert!(matches!(chats.append(reply, "more"), Err(ChatsError::Ended)));
        assert!(matches!(chats.finish(reply, &Ending::Complete, None), Err(ChatsError::Ended)));
        assert_eq!(chats.message(reply).unwrap().state, state);
    }
}

#[test]
fn another_branch_leaves_the_first_one_in_place() {
    let (_folder, _path, chats) = fresh();
    let (id, question) = chats.start("first").unwrap();
    let reply = chats.begin_reply(question, None).unwrap();
    chats.finish(reply, &Ending::Complete, None).unwrap();
    let follow_up = chats.say(id, Some(reply), "second").unwrap();
    let instead = chats.say(id, Some(reply), "second, put better").unwrap();
    let shown: Vec<_> = chats.get(id).unwrap().messages.iter().map(|message| message.id).collect();
    assert_eq!(shown, [question, reply, instead]);
    let other: Vec<_> = chats.path(follow_up).unwrap().iter().map(|message| message.id).collect();
    assert_eq!(other, [question, reply, follow_up]);
}

#[test]
fn the_conversation_written_in_last_comes_first() {
    let (_folder, _path, chats) = fresh();
    let (first, question) = chats.start("one").unwrap();
    let (second, _) = chats.start("two").unwrap();
    let order = || chats.list().unwrap().iter().map(|summary| summary.id).collect::<Vec<_>>();
    assert_eq!(order(), [second, first]);
    // Times are whole milliseconds; go on once this one has passed.
    std::thread::sleep(std::time::Duration::from_millis(5));
    chats.say(first, Some(question), "again").unwrap();
    assert_eq!(order(), [first, second]);
}

#[test]
fn renaming_and_deleting() {
    let (_folder, _path, chats) = fresh();
    let (id, question) = chats.start("the first words").unwrap();
    chats.rename(id, "  Birds\n and branches ").unwrap();
    assert_eq!(chats.get(id).unwrap().title, "Birds and branches");
    chats.rename(id, " ").unwrap();
    assert_eq!(chats.get(id).unwrap().title, "the first words");

    let reply = chats.begin_reply(question, None).unwrap();
    chats.delete(id).unwrap();
    assert!(chats.list().unwrap().is_empty());
    assert!(matches!(chats.message(question), Err(ChatsError::NotFound(_))));
    assert!(matches!(chats.append(reply, "late"), Err(ChatsError::NotFound(_))));
    assert!(matches!(chats.delete(id), Err(ChatsError::NotFound(_))));
    let (again, asked_again) = chats.start("new").unwrap();
    assert!(again > id && asked_again > reply, "ids are never used twice");
}

#[test]
fn a_parent_from_another_conversation_is_refused() {
    let (_folder, _path, chats) = fresh();
    let (_, elsewhere) = chats.start("one").unwrap();
    let (second, _) = chats.start("two").unwrap();
    assert!(matches!(chats.say(second, Some(elsewhere), "lost"), Err(ChatsError::NotFound("message"))));
    assert_eq!(chats.get(second).unwrap().messages.len(), 1);
}

#[test]
fn what_is_no_database_is_refused_and_kept() {
    let (_folder, path, chats) = fresh();
    for number in 0..200 {
        chats.start(&format!("question {number} {}", "words ".repeat(50))).unwrap();
    }
    drop(chats);
    let whole = fs::read(&path).unwrap();
    let mut overwritten = whole.clone();
    overwritten[4096..whole.len() / 2].fill(0xa5);
    for (what, bytes) in [
        ("text", b"these are not conversations, and there are more than sixteen bytes".to_vec()),
        ("cut short", whole[..whole.len() / 2].to_vec()),
        ("overwritten", overwritten),
    ] {
        fs::write(&path, &bytes).unwrap();
        let error = Chats::open(&path).err();
        let Some(error @ ChatsError::Damaged { .. }) = error else { panic!("{what}: {error:?}") };
        assert!(error.to_string().contains("chats.sqlite3"), "{error}");
        assert!(error.hint().is_some());
        assert_eq!(fs::read(&path).unwrap(), bytes, "{what}: the file was changed");
    }
}

#[test]
fn a_newer_schema_is_refused_and_kept() {
    let (_folder, path, chats) = fresh();
    let (id, _) = chats.start("from the future").unwrap();
    drop(chats);
    let version = |change: Option<i64>| {
        let connection = rusqlite::Connection::open(&path).unwrap();
        if let Some(version) = change {
            connection.pragma_update(None, "user_version", version).unwrap();
        }
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).unwrap()
    };
    let current = version(None);
    version(Some(99));
    assert!(matches!(Chats::open(&path), Err(ChatsError::NewerVersion { .. })));
    assert_eq!(version(Some(current)), current);
    assert_eq!(Chats::open(&path).unwrap().get(id).unwrap().title, "from the future");
}
