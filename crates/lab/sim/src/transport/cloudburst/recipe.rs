//! What an endpoint is created from, in a simulation and when its recording is replayed.

use super::paths::{HostPaths, PORT};
use cloudburst_core::config::{Config, ConfigError, ListenPorts, Security};
use cloudburst_core::proto::Transceiver;
use cloudburst_core::rng::Seed;

/// The key that all hosts share.
const KEY: [u8; 32] = [7; 32];

/// Everything that an endpoint is created from.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) config: Config,
    pub(super) seed: [u8; 32],
    pub(super) paths: HostPaths,
}

impl Recipe {
    /// Creates the endpoint at time 0.
    pub(super) fn endpoint(&self) -> Result<Transceiver, ConfigError> {
        let security = Security::pre_shared(KEY);
        let seed = Seed::new(self.seed);
        let paths = Box::new(self.paths);
        Transceiver::new(self.config.clone(), ListenPorts::one(PORT), &security, seed, paths)
    }
}
