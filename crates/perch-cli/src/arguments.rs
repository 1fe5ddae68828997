//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use perch_engine::{Device, DevicePreference, SamplingOptions};

/// Language models on this machine.
#[derive(Debug, Parser)]
#[command(name = "perch", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Chat in the terminal.
    Chat(Chat),
    /// One answer to standard output.
    Run(Run),
    /// Serve the models to other programs over HTTP.
    Serve(Serve),
    /// What a folder or file is, whether it is whole and what memory it takes.
    Inspect(Inspect),
    /// Token ids and pieces of a text.
    Tokenize(Tokenize),
    /// The prompt that a chat template makes of messages.
    Render(Render),
    /// The logits behind token ids.
    Logits(Logits),
    /// Continue token ids, past end tokens.
    Generate(Generate),
    /// Measure speed and memory.
    Bench(Bench),
}

impl Command {
    /// Whether output, errors included, is for programs.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Chat(_) | Self::Run(_) | Self::Serve(_) => false,
            Self::Inspect(options) => options.json,
            Self::Tokenize(options) => options.json,
            Self::Render(options) => options.json,
            Self::Logits(options) => options.json,
            Self::Generate(options) => options.json,
            Self::Bench(options) => options.json,
        }
    }
}

/// What computes.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum DeviceArgument {
    /// Whatever is best.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// MLX on Apple's GPU.
    Mlx,
}

impl From<DeviceArgument> for DevicePreference {
    fn from(device: DeviceArgument) -> Self {
        match device {
            DeviceArgument::Auto => Self::Auto,
            DeviceArgument::Cpu => Self::Only(Device::Cpu),
            DeviceArgument::Mlx => Self::Only(Device::Mlx),
        }
    }
}

/// How words are chosen; what is not given is left to the model.
#[derive(Debug, Clone, Args)]
pub(crate) struct Sampling {
    /// 0 always takes the most likely token; higher is more varied.
    #[arg(long)]
    temperature: Option<f32>,
    /// Choose among the K most likely tokens.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Choose among the most likely tokens that together reach this probability.
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Choose among tokens at least this likely relative to the most likely one.
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// Above 1 makes tokens that were seen less likely.
    #[arg(long, value_name = "N")]
    repetition_penalty: Option<f32>,
    /// Makes tokens that the reply holds less likely.
    #[arg(long, value_name = "N")]
    presence_penalty: Option<f32>,
    /// Makes tokens less likely by how often the reply holds them.
    #[arg(long, value_name = "N")]
    frequency_penalty: Option<f32>,
    /// The same seed gives the same reply.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// End the reply before this text; may be given several times.
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Vec<String>,
    /// End the reply after so many tokens.
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
}

impl Sampling {
    pub(crate) fn options(&self) -> SamplingOptions {
        SamplingOptions {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: Vec::new(),
            seed: self.seed,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// A model's name or folder; the only one in the library if not given.
    pub(crate) model: Option<String>,
    /// What the model is told before the conversation.
    #[arg(long)]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DeviceArgument,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A model's name or folder, and the prompt; the only model in the library if just a prompt is given.
    #[arg(num_args = 1..=2, required = true, value_names = ["MODEL", "PROMPT"])]
    pub(crate) model_and_prompt: Vec<String>,
    /// What the model is told before the prompt.
    #[arg(long)]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DeviceArgument,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A model folder, or a folder of model folders; may be given several times. The library if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) models: Vec<PathBuf>,
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = perch_server::DEFAULT_PORT)]
    pub(crate) port: u16,
    /// The token that clients must send; a new one if not given.
    #[arg(long, env = "PERCH_TOKEN", hide_env_values = true, conflicts_with = "no_auth")]
    pub(crate) token: Option<String>,
    /// Let every program of this machine in. Not possible on other addresses.
    #[arg(long)]
    pub(crate) no_auth: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DeviceArgument,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A model folder, or a file in one.
    pub(crate) path: PathBuf,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tokenize {
    /// A model's name or folder.
    pub(crate) model: String,
    pub(crate) text: String,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Render {
    /// A model's name or folder; not needed with --template.
    #[arg(required_unless_present = "template")]
    pub(crate) model: Option<String>,
    /// A JSON file with messages, and tools, add_generation_prompt, enable_thinking, bos_token and eos_token if
    /// need be.
    #[arg(long, value_name = "FILE")]
    pub(crate) messages: PathBuf,
    /// A template in place of the model's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Logits {
    /// A model's name or folder.
    pub(crate) model: String,
    /// Token ids.
    #[arg(long, value_delimiter = ',', required = true, value_name = "1,2,3")]
    pub(crate) tokens: Vec<u32>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DeviceArgument,
    /// How many of the last position's largest logits.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) top: usize,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// A model's name or folder.
    pub(crate) model: String,
    /// Token ids.
    #[arg(long, value_delimiter = ',', required = true, value_name = "1,2,3")]
    pub(crate) tokens: Vec<u32>,
    /// Always take the most likely token.
    #[arg(long)]
    pub(crate) greedy: bool,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DeviceArgument,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// A model's name or folder.
    pub(crate) model: String,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) device: DeviceArgument,
    /// Tokens of the prompt.
    #[arg(long, default_value_t = 512, value_name = "N")]
    pub(crate) prompt: usize,
    /// Tokens to generate.
    #[arg(long, default_value_t = 128, value_name = "N")]
    pub(crate) generate: usize,
    /// Requests at the same time.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) parallel: usize,
    #[arg(long)]
    pub(crate) json: bool,
}
