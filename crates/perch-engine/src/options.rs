//! Sampling settings as people and clients give them: some, on top of what the model recommends.

use std::hash::{BuildHasher, Hasher, RandomState};

use perch_model::ErrorCode;
use perch_model::defaults::GenerationDefaults;
use perch_nn::sampling::SamplingParams;

use crate::Failure;

/// Settings that were given; `None` leaves it to the model, else to Perch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplingOptions {
    /// See [`SamplingParams::temperature`]; 0 to 5.
    pub temperature: Option<f32>,
    /// See [`SamplingParams::top_k`].
    pub top_k: Option<usize>,
    /// See [`SamplingParams::top_p`]; above 0, at most 1.
    pub top_p: Option<f32>,
    /// See [`SamplingParams::min_p`]; 0 to 1.
    pub min_p: Option<f32>,
    /// See [`SamplingParams::repetition_penalty`]; above 0, at most 10.
    pub repetition_penalty: Option<f32>,
    /// See [`SamplingParams::presence_penalty`]; -2 to 2.
    pub presence_penalty: Option<f32>,
    /// See [`SamplingParams::frequency_penalty`]; -2 to 2.
    pub frequency_penalty: Option<f32>,
    /// See [`SamplingParams::logit_bias`]; -100 to 100.
    pub logit_bias: Vec<(u32, f32)>,
    /// See [`SamplingParams::seed`]; a new one for each request when not given.
    pub seed: Option<u64>,
}

/// The temperature when neither the request nor the model names one.
pub const DEFAULT_TEMPERATURE: f32 = 0.7;

impl SamplingOptions {
    /// Fills in what was not given.
    ///
    /// # Errors
    /// A setting out of its range, by name; a bias for a token that the model does not have.
    pub fn resolve(
        self,
        defaults: &GenerationDefaults,
        vocab_size: usize,
    ) -> Result<SamplingParams, Failure> {
        let within = |name: &str, value: f32, least: f32, most: f32| {
            if (least..=most).contains(&value) {
                Ok(value)
            } else {
                Err(invalid(format!("{name} is {value}, expected {least} to {most}")))
            }
        };
        if let Some((token, _)) = self.logit_bias.iter().find(|(token, _)| *token as usize >= vocab_size) {
            return Err(invalid(format!("logit_bias names token {token}, but the model has {vocab_size}")));
        }
        for &(_, bias) in &self.logit_bias {
            within("logit_bias", bias, -100.0, 100.0)?;
        }
        let temperature = self.temperature.or(defaults.temperature).unwrap_or(DEFAULT_TEMPERATURE);
        let top_p = self.top_p.or(defaults.top_p).unwrap_or(1.0);
        let repetition_penalty = self.repetition_penalty.or(defaults.repetition_penalty).unwrap_or(1.0);
        Ok(SamplingParams {
            temperature: within("temperature", temperature, 0.0, 5.0)?,
            top_k: self.top_k.or(defaults.top_k).unwrap_or(0),
            // The least value is not zero: no token would be left.
            top_p: within("top_p", top_p, f32::MIN_POSITIVE, 1.0)?,
            min_p: within("min_p", self.min_p.or(defaults.min_p).unwrap_or(0.0), 0.0, 1.0)?,
            repetition_penalty: within("repetition_penalty", repetition_penalty, 0.01, 10.0)?,
            presence_penalty: within("presence_penalty", self.presence_penalty.unwrap_or(0.0), -2.0, 2.0)?,
            frequency_penalty: within("frequency_penalty", self.frequency_penalty.unwrap_or(0.0), -2.0, 2.0)?,
            logit_bias: self.logit_bias,
            // The standard library seeds its hashers at random, which is random enough to choose words.
            seed: self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
        })
    }
}

fn invalid(message: String) -> Failure {
    Failure::new(ErrorCode::InvalidRequest, message, "Change the setting, or leave it out.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_goes_before_the_model_and_the_model_before_perch() {
        let model = GenerationDefaults { temperature: Some(0.6), top_k: Some(20), ..Default::default() };
        let given = SamplingOptions { temperature: Some(0.0), ..Default::default() };
        let params = given.resolve(&model, 100).unwrap();
        assert_eq!((params.temperature, params.top_k, params.top_p), (0.0, 20, 1.0));
        let params = SamplingOptions::default().resolve(&GenerationDefaults::default(), 100).unwrap();
        assert_eq!(params.temperature, DEFAULT_TEMPERATURE);
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let table = [
            (SamplingOptions { temperature: Some(-1.0), ..Default::default() }, "temperature"),
            (SamplingOptions { temperature: Some(f32::NAN), ..Default::default() }, "temperature"),
            (SamplingOptions { top_p: Some(0.0), ..Default::default() }, "top_p"),
            (SamplingOptions { min_p: Some(1.5), ..Default::default() }, "min_p"),
            (SamplingOptions { repetition_penalty: Some(0.0), ..Default::default() }, "repetition_penalty"),
            (SamplingOptions { presence_penalty: Some(3.0), ..Default::default() }, "presence_penalty"),
            (SamplingOptions { logit_bias: vec![(100, 1.0)], ..Default::default() }, "logit_bias"),
        ];
        for (options, name) in table {
            let failure = options.resolve(&GenerationDefaults::default(), 100).unwrap_err();
            assert_eq!(failure.code, ErrorCode::InvalidRequest);
            assert!(failure.message.contains(name), "{failure}");
        }
    }
}
