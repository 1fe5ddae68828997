//! A process that is killed in the middle of a reply loses nothing that it had kept.
//!
//! Run without the test harness: the same program is the one that watches and the one that is killed.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use perch_chats::{Chats, Role, State};

/// Pieces that the watcher waits for before it kills the writer.
const PIECES: usize = 40;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    match arguments.iter().position(|argument| argument == "--write") {
        Some(at) => write_until_killed(Path::new(&arguments[at + 1])),
        None => {
            a_killed_process_loses_nothing();
            writeln!(std::io::stdout(), "a killed process loses nothing: ok").expect("standard output");
        }
    }
}

fn a_killed_process_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chats.sqlite3");
    let mut writer = Command::new(env::current_exe().expect("this program"))
        .arg("--write")
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the writer starts");
    let seen: Vec<String> = BufReader::new(writer.stdout.take().expect("its output"))
        .lines()
        .take(PIECES)
        .map(|line| line.expect("a piece"))
        .collect();
    // On Unix this is SIGKILL: the writer cannot tidy up.
    writer.kill().expect("the writer is running");
    writer.wait().expect("the writer has ended");
    assert_eq!(seen.len(), PIECES);

    let chats = Chats::open(&path).expect("the file opens after the crash");
    let summaries = chats.list().expect("conversations");
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0].replying, None);
    let messages = chats.get(summaries[0].id).expect("the conversation").messages;
    assert_eq!(messages[0].text, "Tell me a long story");
    assert_eq!((messages[1].role, messages[1].state), (Role::Assistant, State::Interrupted));
    let shown = seen.concat();
    assert!(messages[1].text.starts_with(&shown), "{:?} does not begin with {shown:?}", messages[1].text);
}

fn write_until_killed(path: &Path) {
    let chats = Chats::open(path).expect("a new file");
    let (_, question) = chats.start("Tell me a long story").expect("a conversation");
    let reply = chats.begin_reply(question, Some("storyteller")).expect("a reply");
    let mut output = std::io::stdout();
    for number in 0.. {
        let piece = format!("wörd {number} ");
        chats.append(reply, &piece).expect("kept");
        if writeln!(output, "{piece}").and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}
