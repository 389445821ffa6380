//! The order in which packets visit the paths to a peer: names and requirements.

use super::shape::{Shape, ShapeError};
use core::fmt;
use core::str::FromStr;

/// The order in which packets to one peer visit its paths: section 3.1.2 of the DRB paper
/// (*Per-packet Load-balanced, Low-Latency Routing for Clos-based Data Center Networks*, CoNEXT
/// 2013).
///
/// Every order starts at a random place for each peer; see [`Sequence`](super::Sequence).
///
/// # Example
///
/// ```
/// # use cloudburst_core::path::{Order, Shape};
/// assert_eq!("recycled".parse(), Ok(Order::Recycled));
/// let order: Order = "drb:2x8".parse()?;
/// assert_eq!(order, Order::DigitReversal(Shape::layers(&[2, 8])?));
/// assert_eq!((order.paths(), Order::Random.paths()), (Some(16), None));
/// assert!(order.check_paths(16).is_ok() && order.check_paths(12).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// RB, random bouncing: a path drawn at random for each train. It may skip paths: a small
    /// message may miss the good ones by chance, and at full load queues are unbounded.
    Random,
    /// RRB, round robin: the paths by number. For paths that share no uplink of this host's switch,
    /// and for hashed ports, whose paths are unknown. In a Fat-tree, neighbours share an uplink, and
    /// packets queue there.
    #[default]
    RoundRobin,
    /// DRB, digit reversal: paths that share an uplink are visited as far apart as possible. Number
    /// the paths as [`Shape`] defines; with other numbers, it is no better than round robin.
    DigitReversal(Shape),
    /// REPS (arXiv 2407.21625): a train that arrives complete, and without CE marks where packets are
    /// ECN-capable, earns its path one more train, oldest first. All other trains, and one of 16 in
    /// any case, take paths drawn at random. If four or more paths are alive, no path carries two of
    /// four successive trains. Paths that lose packets thus get fewer trains, and paths that deliver
    /// get more. Use it where paths differ; until answers arrive, and where paths are alike, it gains
    /// nothing over [`RoundRobin`](Self::RoundRobin).
    Recycled,
}

/// Why an order cannot be used. The configuration is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The text does not name an order.
    #[error("setting `order` is {given:?}: it must be {ACCEPTED}")]
    Unknown {
        /// The text.
        given: String,
    },
    /// The shape is not that of any fabric.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The path map has another number of paths than the shape.
    #[error(
        "setting `order` is {order}, of {expected} paths: it must fit the path map, which has {paths}"
    )]
    Paths {
        /// The order.
        order: Order,
        /// The number of paths of its shape.
        expected: usize,
        /// The number of paths in the path map.
        paths: usize,
    },
    /// There are no paths to put in order.
    #[error("there is no path to visit")]
    NoPaths,
}

const ACCEPTED: &str = "rb, rrb, recycled, drb:fat-tree:<ports of a switch>, drb:vl2:<d0>,<d1>,<d2> (uplinks \
    of a TOR, ports of an aggregation and of a spine switch), or drb:<fan-out>[x<fan-out>...] from \
    the TOR on";

impl Order {
    /// Returns the number of paths that the order needs; `None` if any number will do.
    pub fn paths(&self) -> Option<usize> {
        match self {
            Self::Random | Self::RoundRobin | Self::Recycled => None,
            Self::DigitReversal(shape) => Some(shape.paths()),
        }
    }

    /// Checks that `paths` paths can be visited in this order.
    ///
    /// # Errors
    ///
    /// [`OrderError::Paths`] if the shape has more or fewer, [`OrderError::NoPaths`] if there are
    /// none.
    pub fn check_paths(&self, paths: usize) -> Result<(), OrderError> {
        match self.paths() {
            _ if paths == 0 => Err(OrderError::NoPaths),
            Some(expected) if expected != paths => {
                Err(OrderError::Paths { order: *self, expected, paths })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("rb"),
            Self::RoundRobin => f.write_str("rrb"),
            Self::Recycled => f.write_str("recycled"),
            Self::DigitReversal(shape) => write!(f, "drb:{shape}"),
        }
    }
}

impl FromStr for Order {
    type Err = OrderError;

    /// Parses the text that [`Display`](fmt::Display) writes.
    fn from_str(given: &str) -> Result<Self, OrderError> {
        let shape = match given {
            "rb" => return Ok(Self::Random),
            "rrb" => return Ok(Self::RoundRobin),
            "recycled" => return Ok(Self::Recycled),
            _ => given.strip_prefix("drb:").and_then(parse_shape),
        };
        match shape {
            Some(shape) => Ok(Self::DigitReversal(shape?)),
            None => Err(OrderError::Unknown { given: given.to_owned() }),
        }
    }
}

/// Returns `None` if the text has not the form of a shape.
fn parse_shape(text: &str) -> Option<Result<Shape, ShapeError>> {
    if let Some(ports) = text.strip_prefix("fat-tree:") {
        return Some(Shape::fat_tree(number(ports)?));
    }
    if let Some(ports) = text.strip_prefix("vl2:") {
        // Two numbers would do, but the VL2 paper has two others, D_A and D_I, of different meaning.
        let [tor, aggregation, spine] = numbers(ports, ',')?.try_into().ok()?;
        return Some(Shape::vl2(tor, aggregation, spine));
    }
    Some(Shape::layers(&numbers(text, 'x')?))
}

fn numbers(text: &str, separator: char) -> Option<Vec<u16>> {
    text.split(separator).map(number).collect()
}

/// Accepts digits only: `parse` would accept a plus sign as well.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_order_are_the_same() {
        let orders = [
            ("rb", Order::Random),
            ("rrb", Order::default()),
            ("recycled", Order::Recycled),
            ("drb:fat-tree:8", Order::DigitReversal(Shape::fat_tree(8).unwrap())),
            ("drb:vl2:4,64,24", Order::DigitReversal(Shape::vl2(4, 64, 24).unwrap())),
            ("drb:2x3x4", Order::DigitReversal(Shape::layers(&[2, 3, 4]).unwrap())),
            ("drb:4", Order::DigitReversal(Shape::layers(&[4]).unwrap())),
        ];
        for (text, order) in orders {
            assert_eq!(text.parse(), Ok(order));
            assert_eq!(order.to_string(), text);
        }
    }

    #[test]
    fn text_that_names_no_order_is_refused_with_a_list_of_orders() {
        let texts = [
            "",
            "RB",
            "rr",
            "drb",
            "drb:",
            "drb:x",
            "drb:2x",
            "drb:2x-2",
            "drb:+2x2",
            "drb:2x2 ",
            "drb:fat-tree",
            "drb:fat-tree:",
            "drb:fat-tree:a",
            "drb:fat-tree:99999",
            "drb:vl2:4",
            "drb:vl2:4,8",
            "drb:vl2:2,4,4,4",
            "rrb:4",
            "recycled:4",
        ];
        for text in texts {
            let error = text.parse::<Order>().unwrap_err();
            assert_eq!(error, OrderError::Unknown { given: text.to_owned() });
        }
        assert_eq!(
            "drb:tree".parse::<Order>().unwrap_err().to_string(),
            "setting `order` is \"drb:tree\": it must be rb, rrb, recycled, \
             drb:fat-tree:<ports of a switch>, drb:vl2:<d0>,<d1>,<d2> (uplinks of a TOR, ports of an aggregation and of a \
             spine switch), or drb:<fan-out>[x<fan-out>...] from the TOR on"
        );
    }

    #[test]
    fn a_refused_shape_names_the_field_the_value_and_the_range() {
        let ports = "an even number of ports between 4 and 510";
        let d1 = "an even number of ports of an aggregation switch, at least 4";
        let d2 = "a number of ports of a spine switch that is a multiple of d0";
        let paths = "a shape of at most 65535 paths";
        let layers = "one fan-out or more, each at least 2";
        let refusals = [
            ("fat-tree:7", "fat-tree` is 7", ports),
            ("fat-tree:2", "fat-tree` is 2", ports),
            ("fat-tree:512", "fat-tree` is 512", ports),
            ("vl2:1,4,4", "vl2.d0` is 1", "at least 2 uplinks of a TOR"),
            ("vl2:2,5,4", "vl2.d1` is 5", d1),
            ("vl2:2,2,4", "vl2.d1` is 2", d1),
            ("vl2:4,8,6", "vl2.d2` is 6", d2),
            ("vl2:4,8,0", "vl2.d2` is 0", d2),
            ("vl2:512,512,512", "paths` is 512,512,512", paths),
            ("256x256", "paths` is 256x256", paths),
            ("1x4", "layers` is 1x4", layers),
            ("2x0", "layers` is 2x0", layers),
        ];
        for (shape, given, expected) in refusals {
            let error = format!("drb:{shape}").parse::<Order>().unwrap_err();
            let expected = format!("setting `order.{given}: it must be {expected}");
            assert_eq!(error.to_string(), expected);
        }
        assert!(Shape::layers(&[]).is_err());
        assert!(Shape::layers(&[2; 16]).is_err());
    }

    #[test]
    fn a_shape_takes_its_own_number_of_paths() {
        let order: Order = "drb:fat-tree:8".parse().unwrap();
        assert_eq!(order.check_paths(16), Ok(()));
        assert_eq!(
            order.check_paths(4).unwrap_err().to_string(),
            "setting `order` is drb:fat-tree:8, of 16 paths: it must fit the path map, which has 4"
        );
        assert_eq!(order.check_paths(0), Err(OrderError::NoPaths));
        for order in [Order::Random, Order::RoundRobin, Order::Recycled] {
            assert_eq!(order.check_paths(7), Ok(()));
            assert_eq!(order.check_paths(0), Err(OrderError::NoPaths));
        }
    }
}
