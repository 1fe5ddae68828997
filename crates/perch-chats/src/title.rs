//! What a conversation is called until the person calls it something else.

/// Longest title, in characters.
const LONGEST: usize = 60;

/// The beginning of `text` on one line, cut at a word where that is possible.
pub(crate) fn from_first_message(text: &str) -> String {
    let mut title = String::new();
    for word in text.split_whitespace() {
        let space = usize::from(!title.is_empty());
        let room = LONGEST - title.chars().count();
        if word.chars().count() + space <= room {
            if space == 1 {
                title.push(' ');
            }
            title.push_str(word);
            continue;
        }
        if title.is_empty() {
            title.extend(word.chars().take(LONGEST - 1));
        } else if title.chars().count() == LONGEST {
            title.pop();
        }
        title.push('…');
        break;
    }
    if title.is_empty() { "New chat".to_owned() } else { title }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        let long_word = "ab".repeat(40);
        let cut_word = format!("{}…", &long_word[..59]);
        let exact = "x".repeat(60);
        let cut_exact = format!("{}…", "x".repeat(59));
        for (text, expected) in [
            ("  Hello\n there ", "Hello there"),
            ("", "New chat"),
            (" \n", "New chat"),
            ("日本語はどうですか", "日本語はどうですか"),
            (
                "Explain how the tides come about and why there are two of them every day, please",
                "Explain how the tides come about and why there are two of…",
            ),
            (&long_word, &cut_word),
            (&exact, &exact),
            (&format!("{exact} more"), &cut_exact),
        ] {
            let title = from_first_message(text);
            assert_eq!(title, expected);
            assert!(title.chars().count() <= LONGEST);
        }
    }
}
