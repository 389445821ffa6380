//! The addresses by which the ends know each other, and the translators and firewalls between them.

use super::error::ExamError;
use super::exam::Examiner;
use crate::plan::DoctorPlan;
use crate::protocol::Vitals;
use cloudburst_net::Naming;
use serde::Serialize;
use std::net::SocketAddr;

/// The addresses in one exchange between two ports.
#[derive(Debug, Serialize)]
pub(super) struct Addresses {
    /// The addresses that this end sent from, and to.
    pub(super) local: SocketAddr,
    #[serde(skip)]
    pub(super) peer: SocketAddr,
    /// `local`, as the receiver sees it.
    pub(super) seen: Option<SocketAddr>,
    /// The address that the receiver listens on.
    pub(super) listens: Option<SocketAddr>,
    /// What `peer` is to the receiver.
    pub(super) naming: Option<Named>,
    /// Whether unsolicited packets from the receiver arrive; `None`: not tried, or not known.
    pub(super) unasked_arrive: Option<bool>,
}

/// [`Naming`], as a report has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Named {
    Own,
    Translated,
    Foreign,
}

impl Addresses {
    /// Sends a request from one port, and has the receiver answer to another one. Returns the receiver's state, too.
    pub(super) fn find_out(
        plan: &DoctorPlan,
        local: SocketAddr,
        peer: SocketAddr,
        requester: &mut Examiner,
    ) -> Result<Option<(Self, Vitals)>, ExamError> {
        let Some((_, vitals)) = requester.request(0)? else { return Ok(None) };
        let named = |naming| match naming {
            Naming::Own => Named::Own,
            Naming::Translated => Named::Translated,
            Naming::Foreign => Named::Foreign,
        };
        let mut addresses = Self {
            local: requester.endpoint.local_addr(),
            peer,
            seen: vitals.requester,
            listens: vitals.listens,
            naming: vitals.naming.map(named),
            unasked_arrive: None,
        };
        // Behind a translator, an answer to another port would go to the translator itself.
        if addresses.source_nat().is_none() {
            let other = Examiner::new(plan, local, peer, 1)?;
            addresses.unasked_arrive = requester.is_answered_at(&other)?;
        }
        Ok(Some((addresses, vitals)))
    }

    /// Returns the address of this end beyond a translator, if there is one.
    fn source_nat(&self) -> Option<SocketAddr> {
        let is_other = |seen: &SocketAddr| {
            (seen.ip(), seen.port()) != (self.local.ip().to_canonical(), self.local.port())
        };
        self.seen.filter(is_other)
    }

    /// Returns findings that are not problems in themselves.
    pub(super) fn notes(&self) -> Vec<String> {
        let Self { local, peer, .. } = self;
        let mut notes = Vec::new();
        if let Some(seen) = self.source_nat() {
            notes.push(format!(
                "this host is behind source NAT: the peer sees {local} as {seen}, and can send \
                 here only on pairs of ports that this host has used before"
            ));
        }
        if self.naming == Some(Named::Translated) {
            notes.push(format!(
                "the peer is behind destination NAT or a virtual IP address, and knows that it is \
                 known as {peer}; {}",
                self.listening()
            ));
        }
        if self.unasked_arrive == Some(false) {
            notes.push(
                "a stateful firewall drops unsolicited packets: peers can send to this host only \
                 on pairs of ports that it has used before"
                    .into(),
            );
        }
        notes
    }

    /// Returns a text that names where the receiver listens.
    pub(super) fn listening(&self) -> String {
        self.listens.map_or("it does not say where it listens".into(), |listens| {
            format!("it listens on {listens}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        let address = |text: &str| text.parse().unwrap();
        Addresses {
            local: address("10.0.0.1:4000"),
            peer: address("192.0.2.7:443"),
            seen: Some(address("10.0.0.1:4000")),
            listens: Some(address("10.0.0.2:7000")),
            naming: Some(Named::Own),
            unasked_arrive: Some(true),
        }
    }

    #[test]
    fn nothing_is_noted_where_no_device_is_in_between() {
        assert_eq!(addresses().notes(), [""; 0]);
        let nothing_known =
            Addresses { seen: None, naming: None, unasked_arrive: None, ..addresses() };
        assert_eq!(nothing_known.notes(), [""; 0]);
    }

    #[test]
    fn a_port_alone_may_be_translated() {
        let seen = "10.0.0.1:4001".parse().ok();
        let notes = Addresses { seen, ..addresses() }.notes();
        assert_eq!(notes.len(), 1);
        let expected =
            "this host is behind source NAT: the peer sees 10.0.0.1:4000 as 10.0.0.1:4001,";
        assert!(notes[0].starts_with(expected), "{notes:?}");
    }

    #[test]
    fn a_peer_that_knows_its_translated_address_is_noted() {
        let notes = Addresses { naming: Some(Named::Translated), ..addresses() }.notes();
        assert!(notes[0].ends_with("known as 192.0.2.7:443; it listens on 10.0.0.2:7000"));
        let foreign = Addresses { naming: Some(Named::Foreign), ..addresses() };
        assert_eq!(foreign.notes(), [""; 0], "that is a problem");
    }
}
