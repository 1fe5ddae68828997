//! Text to tokens and back, by `tokenizer.json`.

use std::path::Path;
use std::sync::Arc;

use crate::config::read_text;
use crate::error::ModelError;

/// Name of the file.
pub(crate) const FILE: &str = "tokenizer.json";

/// What stands for bytes that are no character (yet).
const REPLACEMENT: char = '\u{FFFD}';

/// After this many tokens without a piece, held text is given out as it stands: no character takes that many,
/// so it is noise, and decoding an ever longer run again for each token would take quadratic time.
const LONGEST_HOLD: usize = 64;

/// A model's tokenizer; cheap to clone.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
}

impl Tokenizer {
    /// Reads `tokenizer.json` in `folder`.
    ///
    /// # Errors
    /// A missing file, or one that is no tokenizer.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let text = read_text(folder, FILE)?;
        let mut inner = tokenizers::Tokenizer::from_bytes(text.as_bytes())
            .map_err(|error| ModelError::damaged(FILE, format!("it is no tokenizer: {error}")))?;
        // Some files ask for cutting or padding to a training length; a prompt must reach the model whole.
        inner.with_padding(None);
        inner
            .with_truncation(None)
            .map_err(|error| ModelError::damaged(FILE, format!("it is no tokenizer: {error}")))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Token ids of `text`. `add_special` adds what the model expects around a text, such as a first token;
    /// a rendered chat template has it already.
    ///
    /// # Errors
    /// When the tokenizer cannot encode the text.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, ModelError> {
        let encoding = self
            .inner
            .encode_fast(text, add_special)
            .map_err(|error| ModelError::Tokenizer(error.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Text of `ids`; `skip_special` leaves special tokens out.
    ///
    /// # Errors
    /// When the tokenizer cannot decode the ids.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, ModelError> {
        self.inner.decode(ids, skip_special).map_err(|error| ModelError::Tokenizer(error.to_string()))
    }

    /// How the vocabulary writes a token, bytes and markers included.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The id of a token as the vocabulary writes it.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Number of tokens, added ones included.
    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// Decodes one token after another.
    pub fn stream(&self) -> TokenStream {
        TokenStream { tokenizer: self.clone(), ids: Vec::new(), context: 0, given: String::new() }
    }
}

/// Text of a growing list of tokens, in pieces that never split a character.
///
/// Decoding is not additive: a token's text depends on its neighbours (a leading space that is dropped at the
/// start, a character spread over tokens). So a window is decoded again for each token and what is new in it is
/// given out; the window starts where the piece before the last began.
#[derive(Debug, Clone)]
pub struct TokenStream {
    tokenizer: Tokenizer,
    /// Tokens of the window.
    ids: Vec<u32>,
    /// How many of them only give context: their text is out.
    context: usize,
    /// Text of the window that is out.
    given: String,
}

impl TokenStream {
    /// Adds a token; the text that is certain now, if there is any.
    ///
    /// # Errors
    /// When the tokenizer cannot decode.
    pub fn push(&mut self, id: u32) -> Result<Option<String>, ModelError> {
        self.ids.push(id);
        let text = self.tokenizer.decode(&self.ids, true)?;
        // Replacements at the end may be the beginning of a character that the next token completes.
        let noise = self.ids.len() - self.context > LONGEST_HOLD;
        let certain = if noise { text.len() } else { text.trim_end_matches(REPLACEMENT).len() };
        let Some(new) = text[..certain].strip_prefix(&self.given).filter(|new| !new.is_empty()) else {
            return Ok(None);
        };
        let piece = new.to_owned();
        if certain == text.len() {
            self.ids.drain(..self.context);
            self.context = self.ids.len();
            self.given = self.tokenizer.decode(&self.ids, true)?;
        } else {
            self.given = text[..certain].to_owned();
        }
        Ok(Some(piece))
    }

    /// Text that was held back because more might have completed it.
    ///
    /// # Errors
    /// When the tokenizer cannot decode.
    pub fn finish(self) -> Result<String, ModelError> {
        let text = self.tokenizer.decode(&self.ids, true)?;
        Ok(text.strip_prefix(&self.given).unwrap_or_default().to_owned())
    }
}
