//! The ports at which an endpoint accepts messages.

use super::ConfigError;

/// The maximum number of ports at which one endpoint accepts messages.
pub(crate) const MAX_PORTS: u16 = 64;

/// The UDP ports at which an endpoint accepts messages, as its peers learn them. They follow from the sockets
/// of the driver, and are not settings of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenPorts {
    /// The first port; 0: the source port of the endpoint's packets. Not 0 if `is_shared`.
    pub first: u16,
    /// The number of ports: `first` and those right after it, 1 to 64. Peers learn it, and spread symbols
    /// over these ports if their path map does.
    pub count: u16,
    /// Whether other endpoints share the port that peers know, and answer handshakes there. Peers then learn
    /// `first` from the handshake and send everything else there, because a packet to the shared port may
    /// reach any of the endpoints.
    pub is_shared: bool,
}

impl ListenPorts {
    /// Returns one port that no other endpoint shares.
    pub const fn one(port: u16) -> Self {
        Self { first: port, count: 1, is_shared: false }
    }

    pub(super) fn check(self) -> Result<(), ConfigError> {
        let Self { first, count, .. } = self;
        if !(1..=MAX_PORTS).contains(&count) {
            let value = count.to_string();
            return Err(ConfigError {
                field: "ListenPorts::count",
                value,
                expected: "between 1 and 64",
            });
        }
        if first.checked_add(count - 1).is_none() {
            return Err(ConfigError {
                field: "ListenPorts::first",
                value: first.to_string(),
                expected: "at most 65536 minus `ListenPorts::count`",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_do_not_exist_are_refused() {
        let refusals = [
            ListenPorts { count: 0, ..ListenPorts::one(7_000) },
            ListenPorts { count: 2, ..ListenPorts::one(65_535) },
        ];
        assert_eq!(
            refusals.map(|ports| ports.check().unwrap_err().to_string()),
            [
                "setting `ListenPorts::count` is 0: it must be between 1 and 64",
                "setting `ListenPorts::first` is 65535: it must be at most 65536 minus `ListenPorts::count`",
            ]
        );
    }
}
