//! Datagrams that the system refuses: they are lost, as if on the wire.

use super::counters::Meter;
use cloudburst_core::error::LocalError;
use nix::errno::Errno;

impl Meter {
    /// Counts datagrams that the system refused, and returns the reason.
    pub(super) fn count_loss(&self, error: Errno, datagrams: usize) -> LocalError {
        // Lost, and no error to the caller: an interface that comes back before the deadline, or a
        // buffer that drains, costs symbols and no message. ENOBUFS is what a full queue of this host has
        // dropped, which Linux reports since IP_RECVERR is set.
        let (class, error) = match error {
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM => {
                (&self.no_buffer, LocalError::NoBuffer)
            }
            Errno::ECONNREFUSED => (&self.refused, LocalError::Other),
            Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::ENETDOWN
            | Errno::EHOSTDOWN
            | Errno::EADDRNOTAVAIL
            | Errno::ENODEV => (&self.unreachable, LocalError::Unreachable),
            Errno::EINVAL => (&self.unreachable, LocalError::WrongSource),
            Errno::EPERM => (&self.denied, LocalError::Denied),
            Errno::EACCES => (&self.denied, LocalError::Prohibited),
            Errno::EMSGSIZE => (&self.too_large, LocalError::TooLarge),
            _ => (&self.other, LocalError::Other),
        };
        class.add(datagrams);
        error
    }
}

/// Sends all datagrams. Fails with the last error if the system accepted none.
pub(super) fn any(sent: impl Iterator<Item = Result<(), LocalError>>) -> Result<(), LocalError> {
    sent.reduce(|any, one| any.or(one)).unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_reason_and_its_counter() {
        let meter = Meter::default();
        let loses = |error| meter.count_loss(error, 2);
        assert_eq!(loses(Errno::EINVAL), LocalError::WrongSource);
        assert_eq!(loses(Errno::ENETUNREACH), LocalError::Unreachable);
        assert_eq!(loses(Errno::EACCES), LocalError::Prohibited);
        assert_eq!(loses(Errno::EMSGSIZE), LocalError::TooLarge);
        let counted = meter.read().send_errors;
        assert_eq!((counted.unreachable, counted.denied, counted.too_large), (4, 2, 2));
    }
}
