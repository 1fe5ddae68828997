//! Starts Perch.

fn main() -> std::process::ExitCode {
    perch_app::run()
}
