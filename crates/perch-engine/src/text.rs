//! From tokens to the text that is given out: whole characters, and nothing of a stop string.

use perch_model::ModelError;
use perch_model::tokenizer::TokenStream;

/// The text of one reply as it grows.
pub(crate) struct ReplyText {
    /// `None` where the model has no tokenizer; then there is no text.
    stream: Option<TokenStream>,
    stop: StopStrings,
}

impl ReplyText {
    pub(crate) fn new(stream: Option<TokenStream>, stop: Vec<String>) -> Self {
        Self { stream, stop: StopStrings::new(stop) }
    }

    /// Adds a token: text that can be given out, and whether a stop string came up.
    pub(crate) fn push(&mut self, token: u32) -> Result<(String, bool), ModelError> {
        let piece = match &mut self.stream {
            Some(stream) => stream.push(token)?,
            None => None,
        };
        Ok(piece.map_or_else(Default::default, |piece| self.stop.push(&piece)))
    }

    /// What was held back, once no more tokens come; and whether a stop string came up in it.
    pub(crate) fn finish(&mut self) -> Result<(String, bool), ModelError> {
        let rest = self.stream.take().map(TokenStream::finish).transpose()?.unwrap_or_default();
        let (mut text, stopped) = self.stop.push(&rest);
        if !stopped {
            text.push_str(&std::mem::take(&mut self.stop.held));
        }
        Ok((text, stopped))
    }
}

/// Finds stop strings across the borders of pieces.
struct StopStrings {
    stops: Vec<String>,
    /// Text that may turn out to begin a stop string.
    held: String,
}

impl StopStrings {
    fn new(stops: Vec<String>) -> Self {
        Self { stops, held: String::new() }
    }

    fn push(&mut self, piece: &str) -> (String, bool) {
        self.held.push_str(piece);
        if let Some(at) = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min() {
            let mut text = std::mem::take(&mut self.held);
            text.truncate(at);
            return (text, true);
        }
        let keep = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        (std::mem::replace(&mut self.held, rest), false)
    }
}

/// Length of the longest end of `text` with which `stop` begins.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len().saturating_sub(1));
    (1..=longest)
        .rev()
        .find(|&len| {
            text.is_char_boundary(text.len() - len)
                && stop.as_bytes().starts_with(&text.as_bytes()[text.len() - len..])
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_join_to_the_text_before_the_first_stop(
            text in "[ab \u{e9}\u{1f600}]{0,40}",
            stops in prop::collection::vec("[ab\u{e9}]{1,4}", 0..3),
            cuts in prop::collection::vec(1usize..5, 1..40),
        ) {
            let mut stream = StopStrings::new(stops.clone());
            let (mut out, mut stopped) = (String::new(), false);
            let (mut rest, mut cuts) = (text.as_str(), cuts.iter().cycle());
            while !rest.is_empty() && !stopped {
                let count = *cuts.next().unwrap();
                let at = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
                let (piece, stop) = stream.push(&rest[..at]);
                out.push_str(&piece);
                stopped = stop;
                rest = &rest[at..];
            }
            if !stopped {
                out.push_str(&stream.held);
            }
            // The first stop to be complete ends the text; of several that complete in one piece, the one that
            // begins first. With arbitrary pieces, that is some stop at its first place.
            if stopped {
                prop_assert!(stops.iter().any(|stop| text[out.len()..].starts_with(stop.as_str())));
                prop_assert!(text.starts_with(&out));
                for stop in &stops {
                    prop_assert!(!out.contains(stop.as_str()));
                }
            } else {
                prop_assert_eq!(out, text);
            }
        }
    }
}
