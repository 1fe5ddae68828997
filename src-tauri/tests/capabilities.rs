//! What the page may do: a change here is a change of what a page that went wrong could do.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

fn read(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    serde_json::from_slice(&fs::read(&path).expect("the file is there")).expect("JSON")
}

#[test]
fn the_page_may_hear_events_and_nothing_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("capabilities");
    let files: Vec<_> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(files, ["popover.json"]);
    let capability = read("capabilities/popover.json");
    assert_eq!(capability["windows"], json!(["popover"]));
    assert_eq!(capability["permissions"], json!(["core:event:allow-listen", "core:event:allow-unlisten"]));
    assert_eq!(capability.get("remote"), None);
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let security = &read("tauri.conf.json")["app"]["security"];
    assert_eq!(security["capabilities"], json!(["popover"]));
    let policy = security["csp"].as_str().expect("there is a policy");
    for rule in ["default-src 'self'", "script-src 'self'", "img-src 'self' data:", "object-src 'none'"] {
        assert!(policy.split("; ").any(|have| have == rule), "{rule:?} is not in {policy:?}");
    }
    for never in ["https:", "*", "unsafe-eval", "asset:"] {
        assert!(!policy.contains(never), "{never:?} is in {policy:?}");
    }
    assert_eq!(policy.matches("http:").count(), policy.matches("http://ipc.localhost").count());
}
