//! What this machine is and which engine runs a model on it.

use perch_cpu::{Cpu, Simd};
use perch_model::ErrorCode;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::Failure;

/// This machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The processor's name.
    pub chip: String,
    /// Whether it is Apple Silicon.
    pub apple_silicon: bool,
    /// All memory, in bytes.
    pub memory_bytes: u64,
    /// Threads that the CPU engine would use.
    pub cores: usize,
    /// The vector instructions that the CPU engine would use.
    pub simd: &'static str,
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Perch's own kernels on the processor.
    Cpu,
    /// MLX on Apple's GPU.
    Mlx,
}

impl Device {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Mlx => "mlx",
        }
    }
}

/// What the person wants to compute with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DevicePreference {
    /// Whatever is best.
    #[default]
    Auto,
    /// This one or none.
    Only(Device),
}

/// The engine for a model, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What computes.
    pub device: Device,
    /// Why, in words.
    pub reason: String,
}

impl Machine {
    /// Looks at this machine.
    pub fn detect() -> Self {
        let cpu = CpuRefreshKind::nothing();
        let memory = MemoryRefreshKind::nothing().with_ram();
        let refresh = RefreshKind::nothing().with_cpu(cpu).with_memory(memory);
        let system = System::new_with_specifics(refresh);
        let chip =
            system.as_ref().ok().and_then(|system| Some(system.cpus().first()?.brand().trim().to_owned()));
        let chip = chip.filter(|chip| !chip.is_empty()).unwrap_or_else(|| "an unknown processor".to_owned());
        Self {
            apple_silicon: cfg!(all(target_os = "macos", target_arch = "aarch64")),
            memory_bytes: system.map_or(0, |system| system.total_memory()),
            cores: Cpu::default_threads(),
            simd: Simd::detect().name(),
            chip,
        }
    }

    /// Memory that could be had right now, in bytes.
    pub fn available_memory() -> u64 {
        let refresh = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        System::new_with_specifics(refresh).map_or(0, |system| system.available_memory())
    }

    /// The engine that runs models here.
    ///
    /// # Errors
    /// A preference that this build or machine cannot meet; it is never replaced silently.
    pub fn choose(&self, preference: DevicePreference) -> Result<Choice, Failure> {
        let cpu = format!("the CPU ({}, {} threads)", self.simd, self.cores);
        match preference {
            DevicePreference::Only(Device::Mlx) => Err(Failure::new(
                ErrorCode::Unsupported,
                "MLX was asked for, but this build of Perch has no MLX engine",
                "Leave the choice to Perch, or ask for the CPU.",
            )),
            DevicePreference::Only(Device::Cpu) => {
                Ok(Choice { device: Device::Cpu, reason: format!("The CPU was asked for: {cpu}.") })
            }
            DevicePreference::Auto => Ok(Choice {
                device: Device::Cpu,
                reason: format!("This build of Perch has no MLX engine, so models run on {cpu}."),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_known_and_the_choice_says_why() {
        let machine = Machine::detect();
        assert!(machine.memory_bytes > 100_000_000, "{machine:?}");
        assert!(machine.cores > 0);
        let choice = machine.choose(DevicePreference::Auto).unwrap();
        assert_eq!(choice.device, Device::Cpu);
        assert!(choice.reason.contains("no MLX"), "{}", choice.reason);
    }

    #[test]
    fn an_engine_that_is_not_there_is_refused_and_not_replaced() {
        let refused = Machine::detect().choose(DevicePreference::Only(Device::Mlx)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unsupported);
        assert!(refused.hint.is_some());
    }
}
