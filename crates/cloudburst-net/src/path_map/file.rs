//! Path maps by destination prefix, from a TOML file.

use super::error::PathMapError;
use super::text::net;
use super::uniform::{Needs, Uniform};
use crate::limits::MAX_PATHS;
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The longest file that is read, in bytes: some 20,000 prefixes.
const MAX_LEN: u64 = 1 << 20;

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Table {
    pub(super) path: PathBuf,
    pub(super) text: String,
    rows: BTreeMap<IpNet, Uniform>,
    /// The lengths of the prefixes, of IPv4 and of IPv6, longest first.
    // One look-up for each length in use: ten thousand prefixes cost no more than ten.
    lengths: [Vec<u8>; 2],
}

#[cfg(feature = "path-file")]
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    to: Vec<Row>,
}

#[cfg_attr(feature = "path-file", derive(serde::Deserialize), serde(deny_unknown_fields))]
struct Row {
    prefix: String,
    paths: String,
}

impl Table {
    pub(super) fn parse(path: &Path, text: String) -> Result<Self, PathMapError> {
        let refuse = |reason: String| PathMapError::Table { path: path.to_owned(), reason };
        let document = document(&text).map_err(refuse)?;
        if document.is_empty() {
            return Err(refuse("there is no such table".into()));
        }
        let mut rows = BTreeMap::new();
        for Row { prefix, paths } in document {
            let refuse = |reason: String| PathMapError::Row {
                path: path.to_owned(),
                prefix: prefix.clone(),
                reason,
            };
            let net = net(&prefix).filter(|_| prefix.contains('/')).ok_or_else(|| {
                refuse("it must be a prefix with host bits of zero, such as 10.1.2.0/24".into())
            })?;
            let map = Uniform::parse(&paths).map_err(|error| refuse(error.to_string()))?;
            map.check_list().map_err(|error| refuse(error.to_string()))?;
            map.check_prefix(&net).map_err(refuse)?;
            if rows.insert(net, map).is_some() {
                return Err(refuse("it is given twice".into()));
            }
        }
        let lengths = [true, false].map(|v4| {
            let of_family = rows.keys().filter(|net: &&IpNet| net.addr().is_ipv4() == v4);
            let lengths: BTreeSet<u8> = of_family.map(IpNet::prefix_len).collect();
            lengths.into_iter().rev().collect()
        });
        Ok(Self { path: path.to_owned(), text, rows, lengths })
    }

    /// The combined needs of all rows.
    pub(super) fn needs(&self) -> Needs {
        let one = Needs { sockets: 1, ports: 1, ..Needs::default() };
        self.rows.values().map(Uniform::needs).fold(one, |mut all, needs| {
            all.sockets = all.sockets.max(needs.sockets);
            all.reserve = all.reserve.max(needs.reserve).min(MAX_PATHS - all.sockets);
            all.ports = all.ports.max(needs.ports);
            all.labels = all.labels.max(needs.labels);
            all.outer.extend(needs.outer);
            all
        })
    }

    /// Whether `whole` has a row for each prefix of this table, with all of its paths.
    pub(super) fn is_part_of(&self, whole: &Self) -> bool {
        let in_whole = |prefix, map: &Uniform| {
            whole.rows.get(prefix).is_some_and(|whole| map.is_part_of(whole))
        };
        self.rows.iter().all(|(prefix, map)| in_whole(prefix, map))
    }

    /// The row of the longest prefix that contains `address`.
    pub(super) fn row(&self, address: IpAddr) -> Option<(&IpNet, &Uniform)> {
        let lengths = &self.lengths[usize::from(address.is_ipv6())];
        let prefixes = lengths.iter().filter_map(|&len| IpNet::new(address, len).ok());
        prefixes.map(|net| net.trunc()).find_map(|net| self.rows.get_key_value(&net))
    }

    /// Checks each row. The error names the row.
    pub(super) fn each(
        &self,
        mut check: impl FnMut(&IpNet, &Uniform) -> Result<(), PathMapError>,
    ) -> Result<(), PathMapError> {
        self.rows.iter().try_for_each(|(net, map)| {
            check(net, map).map_err(|error| PathMapError::Row {
                path: self.path.clone(),
                prefix: net.to_string(),
                reason: error.to_string(),
            })
        })
    }
}

#[cfg(feature = "path-file")]
fn document(text: &str) -> Result<Vec<Row>, String> {
    let document = toml::from_str(text);
    document.map(|Document { to }| to).map_err(|error| error.to_string().trim_end().into())
}

#[cfg(not(feature = "path-file"))]
fn document(_: &str) -> Result<Vec<Row>, String> {
    Err("this program was built without the feature `path-file` of cloudburst-net".into())
}

/// Reads the file, unless it is too long.
pub(crate) fn read(path: &Path) -> Result<String, PathMapError> {
    let refuse = |reason: String| PathMapError::File { path: path.to_owned(), reason };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_LEN + 1).read_to_string(&mut text));
    match read {
        Ok(len) if len as u64 > MAX_LEN => {
            Err(refuse(format!("it must not exceed {MAX_LEN} bytes")))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(refuse(error.to_string())),
    }
}

#[cfg(all(test, feature = "path-file"))]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Table, PathMapError> {
        Table::parse(Path::new("fabric.toml"), text.into())
    }

    #[test]
    fn the_longest_prefix_counts() {
        let table = parse(
            r#"
            [[to]]
            prefix = "0.0.0.0/0"
            paths = "ecmp:16"
            [[to]]
            prefix = "10.1.2.0/24"
            paths = "bounce:10.3.0.1,10.3.0.2"
            [[to]]
            prefix = "10.1.2.9/32"
            paths = "xpath:10.101.2.9,10.102.2.9"
            "#,
        )
        .unwrap();
        let map = |ip: [u8; 4]| table.row(ip.into()).map(|(_, map)| map.to_string());
        assert_eq!(map([10, 1, 2, 9]).unwrap(), "xpath:10.101.2.9,10.102.2.9");
        assert_eq!(map([10, 1, 2, 8]).unwrap(), "bounce:10.3.0.1,10.3.0.2");
        assert_eq!(map([10, 1, 3, 8]).unwrap(), "ecmp:16");
        assert_eq!(table.row(IpAddr::from([0; 16])), None);
    }

    #[test]
    fn a_refusal_names_the_file_the_prefix_and_what_is_wrong() {
        let row = |prefix: &str, paths: &str| {
            let text = format!("[[to]]\nprefix = \"{prefix}\"\npaths = \"{paths}\"\n");
            parse(&text).unwrap_err().to_string()
        };
        for (prefix, paths, wrong) in [
            ("10.1.2.0", "ecmp:4", "such as 10.1.2.0/24"),
            ("10.1.2.1/24", "ecmp:4", "with host bits of zero"),
            ("::ffff:10.1.2.0/120", "ecmp:4", "it must be a prefix"),
            ("10.1.2.0/24", "ecmp:0", "path map `ecmp:0` has 0 paths"),
            ("10.1.2.0/24", "file:other.toml", "path map `file:other.toml` is unknown"),
            ("10.1.2.0/24", "xpath:10.2.0.0/24,10.2.0.0/24", "twice"),
            ("10.1.2.0/24", "xpath:10.2.0.1", "must be a prefix of the same family and length"),
            ("10.1.2.0/24", "xpath:10.2.0.0/16", "of the same family and length"),
            ("10.1.2.0/24", "flowlabel:4", "needs IPv6"),
            ("fd00::/64", "bounce:10.3.0.1", "needs IPv4"),
        ] {
            let error = row(prefix, paths);
            assert!(error.starts_with(&format!("the path map file fabric.toml, prefix {prefix}")));
            assert!(error.contains(wrong), "{error}");
        }
        for text in ["", "to = []", "[[to]]\nprefix = 1", "[[from]]", "[[to]]\nprefix = \"::/0\""] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("fabric.toml") && error.contains("[[to]]"), "{error}");
        }
        let row = "[[to]]\nprefix = \"::/0\"\npaths = \"ecmp:1\"\n";
        assert!(parse(&row.repeat(2)).unwrap_err().to_string().contains("twice"));
    }
}
