//! Rotary frequencies and their scaling, in single precision as `transformers` computes them.

use std::f32::consts::PI;

use crate::config::{Config, FILE};
use crate::error::ModelError;
use crate::spec::RopeSpec;

/// Reads `rope_theta` and `rope_scaling`, or `rope_parameters`, which holds both.
pub(super) fn spec(config: &Config, size: usize) -> Result<RopeSpec, ModelError> {
    let parameters = config.object("rope_parameters")?;
    let scaling = match &parameters {
        Some(_) => parameters.clone(),
        None => config.object("rope_scaling")?,
    };
    let base = match &parameters {
        Some(parameters) if parameters.get("rope_theta").is_some() => {
            parameters.number_or("rope_theta", 0.0)?
        }
        _ => config.number_or("rope_theta", 10_000.0)?,
    } as f32;
    if base <= 0.0 {
        return Err(ModelError::damaged(FILE, format!("rope_theta is {base}, expected a positive number")));
    }
    let plain = (0..size / 2).map(|i| 1.0 / base.powf((2 * i) as f32 / size as f32));
    let Some(scaling) = scaling else { return Ok(RopeSpec { inverse_frequencies: plain.collect() }) };

    let kind = match scaling.text("rope_type")? {
        Some(kind) => kind,
        None => scaling.text("type")?.unwrap_or("default"),
    };
    let positive = |key: &str| {
        let value = scaling.number_or(key, f64::NAN)? as f32;
        if value > 0.0 {
            Ok(value)
        } else {
            Err(ModelError::damaged(FILE, format!("rope scaling {kind:?} needs a positive {key}")))
        }
    };
    let inverse_frequencies = match kind {
        "default" => plain.collect(),
        "linear" => {
            let factor = positive("factor")?;
            plain.map(|frequency| frequency / factor).collect()
        }
        "llama3" => {
            let factor = positive("factor")?;
            let (low, high) = (positive("low_freq_factor")?, positive("high_freq_factor")?);
            let original = positive("original_max_position_embeddings")?;
            if high <= low {
                return Err(ModelError::damaged(
                    FILE,
                    format!("rope scaling: high_freq_factor {high} must exceed low_freq_factor {low}"),
                ));
            }
            plain
                .map(|frequency| {
                    let wavelength = 2.0 * PI / frequency;
                    if wavelength > original / low {
                        frequency / factor
                    } else if wavelength < original / high {
                        frequency
                    } else {
                        let smooth = (original / wavelength - low) / (high - low);
                        (1.0 - smooth) * frequency / factor + smooth * frequency
                    }
                })
                .collect()
        }
        other => {
            return Err(ModelError::unsupported(
                FILE,
                format!(
                    "rope scaling {other:?} is not known to this build; it runs default, linear and llama3"
                ),
            ));
        }
    };
    Ok(RopeSpec { inverse_frequencies })
}
