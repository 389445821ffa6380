//! The parameters of one switch: a TOML file, and the options that take precedence over it.

use super::error::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

/// All parameters of a switch, not checked yet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    pub(crate) platform: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) role: Option<Role>,
    #[serde(default)]
    pub(crate) ports: Vec<String>,
    pub(crate) dscp: Option<u8>,
    /// Instead of `dscp`: one for each class of Cloudburst's packets, the most urgent first.
    #[serde(default)]
    pub(crate) dscps: Vec<u8>,
    pub(crate) queue: Option<u8>,
    pub(crate) limit: Option<String>,
    /// Sets those of `buffer`, `mmus` and `cell` that are not given.
    pub(crate) chip: Option<String>,
    pub(crate) buffer: Option<String>,
    /// The number of parts of the buffer, each of which only its own ports can use.
    pub(crate) mmus: Option<u32>,
    pub(crate) mtu: Option<u32>,
    pub(crate) cell: Option<u32>,
    pub(crate) rate: Option<String>,
    pub(crate) weights: Option<Weights>,
    pub(crate) seed: Option<u32>,
    /// The traffic class of each DSCP in use. All others have class 0.
    #[serde(default)]
    pub(crate) classes: BTreeMap<String, u8>,
    /// Traffic classes with priority flow control.
    #[serde(default)]
    pub(crate) pfc: Vec<u8>,
    pub(crate) aeolus: Option<String>,
    pub(crate) trim: Option<Trim>,
    /// The address at which IP-in-IP packets are decapsulated.
    pub(crate) decapsulate: Option<Ipv4Addr>,
    /// The prefixes that such packets may come from; empty: any.
    #[serde(default)]
    pub(crate) decapsulate_from: Vec<String>,
    #[serde(default)]
    pub(crate) routes: Vec<Route>,
}

/// The place of a switch in the fabric. Used only in comments: both have the same queue.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    #[default]
    Leaf,
    Spine,
}

/// The shares of a busy link.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Weights {
    pub(crate) tiny: u32,
    pub(crate) default: u32,
}

/// How packets that meet a full tiny queue are trimmed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trim {
    /// Bytes that remain of a packet.
    pub(crate) bytes: u32,
    /// The DSCP of trimmed packets.
    pub(crate) dscp: u8,
    /// Their queue and traffic class.
    pub(crate) queue: u8,
}

/// One explicit path: an address of a host, and its only next hop.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    /// The address, as a prefix of 32 bits.
    pub(crate) to: String,
    pub(crate) via: Ipv4Addr,
    pub(crate) port: String,
}

impl Parameters {
    /// Reads the parameters in a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not TOML of this form.
    pub(crate) fn read(path: &Path) -> Result<Self, Refusal> {
        let file = |source| Refusal::File { path: path.into(), source };
        let text = std::fs::read_to_string(path).map_err(file)?;
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            let reason = format!("line {line}: {}", error.message().replace('\n', " "));
            Refusal::Toml { path: path.into(), reason }
        })
    }
}

impl core::str::FromStr for Weights {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let both = text.split_once(':');
        let both =
            both.and_then(|(tiny, default)| Some((tiny.parse().ok()?, default.parse().ok()?)));
        let (tiny, default) = both.ok_or("expected TINY:DEFAULT, such as 1:1 or 1:3")?;
        Ok(Self { tiny, default })
    }
}
