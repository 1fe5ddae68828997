//! Bounds on the memory that a chat template takes.
//!
//! The template engine counts steps, but a handful of steps that each double a text fill any memory. A text can
//! only feed on itself through a variable, so whatever a template assigns or takes as a macro's argument is
//! measured, as is what it prints, and so are the methods and filters whose result is a product of their inputs.

use std::cell::Cell;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};

/// Bytes of the largest text in a variable; a prompt of a million tokens is smaller.
const LARGEST: usize = 16 << 20;

/// Bytes that all assignments and all output of one render may have together.
const TOTAL: usize = 512 << 20;

/// The filter that measures what is assigned.
const FILTER: &str = "perch_bounded";

thread_local! {
    /// Bytes measured in this thread's current render; a render never leaves its thread.
    static MEASURED: Cell<usize> = const { Cell::new(0) };
}

/// Starts counting for a render.
pub(crate) fn begin() {
    MEASURED.set(0);
}

/// Counts `bytes` that a template made.
///
/// # Errors
/// When it made too many.
pub(crate) fn measure(bytes: usize) -> Result<(), Error> {
    let total = MEASURED.get().saturating_add(bytes);
    MEASURED.set(total);
    if bytes > LARGEST || total > TOTAL {
        let reason = "it makes more text than any conversation needs";
        return Err(Error::new(ErrorKind::InvalidOperation, reason));
    }
    Ok(())
}

/// Adds the bounds to an environment.
pub(crate) fn install(environment: &mut Environment<'static>) {
    environment.add_filter(FILTER, |value: Value| -> Result<Value, Error> {
        match value.kind() {
            ValueKind::String => measure(value.as_str().map_or(0, str::len))?,
            ValueKind::Seq | ValueKind::Iterable => {
                measure(value.len().unwrap_or(0).saturating_mul(size_of::<Value>()))?;
            }
            _ => {}
        }
        Ok(value)
    });
    environment.add_filter("replace", |text: String, from: String, to: String| -> Result<String, Error> {
        measure(replaced(&text, &from, &to))?;
        Ok(text.replace(&from, &to))
    });
    environment.set_unknown_method_callback(|state, value, method, args| {
        match (method, args) {
            ("replace", [from, to, ..]) => measure(replaced(text(value), text(from), text(to)))?,
            ("join", [list]) => measure(list.len().unwrap_or(0).saturating_mul(text(value).len()))?,
            _ => {}
        }
        minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
    });
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Bytes that a replacement makes at most.
fn replaced(text: &str, from: &str, to: &str) -> usize {
    let matches = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    matches.saturating_mul(to.len()).saturating_add(text.len())
}

/// The inside of a `{% … %}` block with what it assigns measured, and for a macro a block that measures its
/// arguments; `None` where the block assigns nothing. Lines keep their numbers.
pub(crate) fn bounded_block(block: &str) -> Option<String> {
    let inside = block.strip_prefix("{%")?.strip_suffix("%}")?;
    let (open, inside) = mark(inside, str::strip_prefix);
    let (close, inside) = mark(inside, str::strip_suffix);
    let words = inside.trim_start();
    if let Some(assignment) = words.strip_prefix("set").filter(|rest| rest.starts_with(char::is_whitespace)) {
        let (target, value) = assignment.split_once('=')?;
        let is_target = |c: char| c.is_alphanumeric() || c.is_whitespace() || matches!(c, '_' | '.' | ',');
        if !target.chars().all(is_target) || value.trim().is_empty() {
            return None;
        }
        return Some(format!("{{%{open} set{target}=({value})|{FILTER} {close}%}}"));
    }
    let header = words.strip_prefix("macro").filter(|rest| rest.starts_with(char::is_whitespace))?;
    let (_, arguments) = header.trim_end().strip_suffix(')')?.split_once('(')?;
    let mut out = block.to_owned();
    for name in argument_names(arguments) {
        out.push_str(&format!("{{% set {name} = {name}|{FILTER} {close}%}}"));
    }
    Some(out)
}

/// Splits a white-space mark off one end of a block.
fn mark<'a>(text: &'a str, strip: fn(&'a str, &'static str) -> Option<&'a str>) -> (&'static str, &'a str) {
    ["-", "+"].into_iter().find_map(|mark| Some((mark, strip(text, mark)?))).unwrap_or(("", text))
}

/// The names in a macro's list of arguments, which may have defaults.
fn argument_names(arguments: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut depth, mut quote, mut start) = (0_i32, None, 0);
    let mut push = |part: &str| {
        let name = part.split('=').next().unwrap_or_default().trim();
        if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            names.push(name.to_owned());
        }
    };
    for (at, character) in arguments.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                push(&arguments[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    push(&arguments[start..]);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_measured_and_white_space_marks_kept() {
        let cases = [
            ("{%- set x = y ~ y -%}", Some("{%- set x =( y ~ y )|perch_bounded -%}")),
            ("{% set ns.x=1 %}", Some("{% set ns.x=(1 )|perch_bounded %}")),
            ("{% set x %}", None),
            ("{% set x | replace(a='b') %}", None),
            ("{% if x == 1 %}", None),
            ("{% settle x = 1 %}", None),
            (
                "{%- macro f(a, b='(,', c=[1, 2]) -%}",
                Some(
                    "{%- macro f(a, b='(,', c=[1, 2]) -%}{% set a = a|perch_bounded -%}\
                     {% set b = b|perch_bounded -%}{% set c = c|perch_bounded -%}",
                ),
            ),
        ];
        for (block, expected) in cases {
            assert_eq!(bounded_block(block).as_deref(), expected, "{block}");
        }
    }
}
