//! `perch`: everything without a window.
//!
//! Standard output is data, standard error is for people. Exit codes: 0, 1 for an error, 2 for a wrong command line.

mod arguments;
mod bench;
mod chat;
mod models;
mod output;
mod reading;
mod serve;
mod tokens;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use output::Output;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_env("PERCH_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let mut output = Output::new();
    let json = arguments.command.wants_json();
    let result = tokio::runtime::Runtime::new()
        .map_err(|error| {
            output::failure(format!("no threads could be started: {error}"), "Close other programs.")
        })
        .and_then(|tokio| {
            let result = tokio.block_on(run(arguments.command, &mut output));
            // A model's thread or a keyboard that is being read must not hold up the end.
            tokio.shutdown_background();
            result
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure, json);
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command, output: &mut Output) -> Result<(), perch_engine::Failure> {
    match command {
        Command::Chat(options) => chat::chat(options, output).await,
        Command::Run(options) => chat::run(options, output).await,
        Command::Serve(options) => serve::serve(options, output).await,
        Command::Inspect(options) => reading::inspect(&options, output),
        Command::Tokenize(options) => reading::tokenize(&options, output),
        Command::Render(options) => reading::render(&options, output),
        Command::Logits(options) => tokens::logits(options, output).await,
        Command::Generate(options) => tokens::generate(options, output).await,
        Command::Bench(options) => bench::bench(options, output).await,
    }
}
