//! Where Perch keeps what it has to remember.

use std::ffi::OsString;
use std::path::PathBuf;

/// Perch's data folder, the same for the app and the command line: `$PERCH_HOME`; else on macOS
/// `~/Library/Application Support/Perch`, elsewhere `$XDG_DATA_HOME/perch` or `~/.local/share/perch`.
/// The folder may not be there yet. A program without a home folder keeps its data with temporary files.
pub fn data_folder() -> PathBuf {
    choose(|name| std::env::var_os(name), std::env::home_dir(), cfg!(target_os = "macos"))
        .unwrap_or_else(|| std::env::temp_dir().join("perch"))
}

fn choose(
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
    macos: bool,
) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("PERCH_HOME") {
        return std::path::absolute(folder).ok();
    }
    let home = home.filter(|home| home.is_absolute());
    if macos {
        return Some(home?.join("Library/Application Support/Perch"));
    }
    // The XDG specification has relative paths ignored.
    let base = set("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
    Some(base.or_else(|| Some(home?.join(".local/share")))?.join("perch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_place_of_each_system() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, bool, Option<&'a str>);
        let cases: [Case<'_>; 8] = [
            (&[], Some("/home/a"), false, Some("/home/a/.local/share/perch")),
            (&[("XDG_DATA_HOME", "/data")], Some("/home/a"), false, Some("/data/perch")),
            (&[("XDG_DATA_HOME", "relative")], Some("/home/a"), false, Some("/home/a/.local/share/perch")),
            (&[("XDG_DATA_HOME", "")], Some("/home/a"), false, Some("/home/a/.local/share/perch")),
            (&[("PERCH_HOME", "/p"), ("XDG_DATA_HOME", "/data")], Some("/home/a"), false, Some("/p")),
            (
                &[("XDG_DATA_HOME", "/data")],
                Some("/Users/a"),
                true,
                Some("/Users/a/Library/Application Support/Perch"),
            ),
            (&[("PERCH_HOME", "/p")], None, true, Some("/p")),
            (&[], None, false, None),
        ];
        for (variables, home, macos, expected) in cases {
            let variable =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            let found = choose(variable, home.map(PathBuf::from), macos);
            assert_eq!(found, expected.map(PathBuf::from), "{variables:?} {home:?} {macos}");
        }
    }
}
