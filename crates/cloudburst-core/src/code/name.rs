//! The codes: their names on the wire and in text, and their properties.

use std::fmt;
use std::str::FromStr;

use super::degree::Degree;
use super::overhead::expected_symbols;

/// A code: the function from (block, ESI) to a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The paper's code (III-A): every symbol is the XOR of a random set of source symbols, and
    /// the set travels with it.
    Lt(Degree),
    /// As [`Lt`](Self::Lt), but the first n symbols are the source symbols themselves.
    ///
    /// Sparse repairs rarely cover the missing symbols: [`Degree::Dense`] is the right choice here.
    LtSystematic(Degree),
    /// A systematic code over GF(2^8): any n of the first 256 symbols decode. With later symbols,
    /// about one block in 250 needs one more.
    #[default]
    Rlf256,
    /// RaptorQ (RFC 6330), which SCDP and others use: systematic; about one block in 200 needs more
    /// than n symbols.
    #[cfg(feature = "raptorq")]
    RaptorQ,
}

/// Text that does not name a code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no code is called {got:?}{}; there are {ACCEPTED}", missing_feature(got))]
#[non_exhaustive]
pub struct CodeNameError {
    /// The text.
    pub got: String,
}

const ACCEPTED: &str = if cfg!(feature = "raptorq") {
    "rlf256, raptorq, lt, lt:<degree>, lt-systematic and lt-systematic:<degree>, where <degree> is \
     d=<1..255>, uniform=<1..255>, ideal, robust or dense"
} else {
    "rlf256, lt, lt:<degree>, lt-systematic and lt-systematic:<degree>, where <degree> is \
     d=<1..255>, uniform=<1..255>, ideal, robust or dense"
};

fn missing_feature(name: &str) -> &'static str {
    if name == "raptorq" && !cfg!(feature = "raptorq") {
        ", because this program was built without the feature `raptorq`"
    } else {
        ""
    }
}

/// The degree of "lt", as the paper recommends (IV-A).
const PAPER: Degree = Degree::Fixed(5);

impl Code {
    /// Returns the code number and its parameter, as on the wire.
    ///
    /// The number of LT is 0x10, of systematic LT 0x20, plus 0 to 4 for the degree: fixed,
    /// uniform, ideal, robust, dense. The parameter is d of the first two, else 0. RLF-256 is
    /// 0x30 and RaptorQ 0x40, with parameter 0.
    pub fn to_wire(self) -> [u8; 2] {
        let (family, degree) = match self {
            Self::Lt(degree) => (0x10, degree),
            Self::LtSystematic(degree) => (0x20, degree),
            Self::Rlf256 => return [0x30, 0],
            #[cfg(feature = "raptorq")]
            Self::RaptorQ => return [0x40, 0],
        };
        let (law, parameter) = match degree {
            Degree::Fixed(d) => (0, d.max(1)),
            Degree::Uniform(d) => (1, d.max(1)),
            Degree::IdealSoliton => (2, 0),
            Degree::RobustSoliton => (3, 0),
            Degree::Dense => (4, 0),
        };
        [family | law, parameter]
    }

    /// Returns the code of these two bytes; `None` if the number or parameter is unknown.
    pub fn from_wire(bytes: [u8; 2]) -> Option<Self> {
        let [number, parameter] = bytes;
        if bytes == [0x30, 0] {
            return Some(Self::Rlf256);
        }
        #[cfg(feature = "raptorq")]
        if bytes == [0x40, 0] {
            return Some(Self::RaptorQ);
        }
        let degree = match (number & 0x0f, parameter) {
            (0, 1..) => Degree::Fixed(parameter),
            (1, 1..) => Degree::Uniform(parameter),
            (2, 0) => Degree::IdealSoliton,
            (3, 0) => Degree::RobustSoliton,
            (4, 0) => Degree::Dense,
            _ => return None,
        };
        match number & 0xf0 {
            0x10 => Some(Self::Lt(degree)),
            0x20 => Some(Self::LtSystematic(degree)),
            _ => None,
        }
    }

    /// Returns whether the first n symbols are the source symbols.
    pub const fn is_systematic(self) -> bool {
        !matches!(self, Self::Lt(_))
    }

    /// Returns the bytes of a symbol's index set on the wire: one bit per source symbol for the LT
    /// codes, 0 for codes whose ids determine the symbols.
    pub const fn index_set_len(self, source_symbols: usize) -> usize {
        match self {
            Self::Lt(_) | Self::LtSystematic(_) => source_symbols.div_ceil(8),
            _ => 0,
        }
    }

    /// Returns the symbols that a receiver needs on average, rounded up, if it has none yet and none of
    /// the first is lost: n for systematic codes, and n plus the measured overhead for the others.
    pub fn expected_symbols(self, source_symbols: usize) -> usize {
        match self {
            Self::Lt(degree) => expected_symbols(degree, source_symbols),
            _ => source_symbols,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lt(degree) => write!(f, "lt:{degree}"),
            Self::LtSystematic(degree) => write!(f, "lt-systematic:{degree}"),
            Self::Rlf256 => f.write_str("rlf256"),
            #[cfg(feature = "raptorq")]
            Self::RaptorQ => f.write_str("raptorq"),
        }
    }
}

impl fmt::Display for Degree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(d) => write!(f, "d={d}"),
            Self::Uniform(d) => write!(f, "uniform={d}"),
            Self::IdealSoliton => f.write_str("ideal"),
            Self::RobustSoliton => f.write_str("robust"),
            Self::Dense => f.write_str("dense"),
        }
    }
}

impl FromStr for Code {
    type Err = CodeNameError;

    /// Parses the text that [`Display`](fmt::Display) writes, and short forms: "lt" is the paper's
    /// code, "lt:d=5", and "lt-systematic" is "lt-systematic:dense".
    fn from_str(text: &str) -> Result<Self, CodeNameError> {
        let (family, degree) = match text.split_once(':') {
            Some((family, degree)) => (family, Some(degree)),
            None => (text, None),
        };
        let code = match (family, degree) {
            ("rlf256", None) => Some(Self::Rlf256),
            #[cfg(feature = "raptorq")]
            ("raptorq", None) => Some(Self::RaptorQ),
            ("lt", None) => Some(Self::Lt(PAPER)),
            ("lt", Some(degree)) => parse_degree(degree).map(Self::Lt),
            ("lt-systematic", None) => Some(Self::LtSystematic(Degree::Dense)),
            ("lt-systematic", Some(degree)) => parse_degree(degree).map(Self::LtSystematic),
            _ => None,
        };
        code.ok_or_else(|| CodeNameError { got: text.to_owned() })
    }
}

fn parse_degree(text: &str) -> Option<Degree> {
    let number = |text: &str| text.parse().ok().filter(|&d| d > 0);
    match text.split_once('=') {
        Some(("d", d)) => number(d).map(Degree::Fixed),
        Some(("uniform", d)) => number(d).map(Degree::Uniform),
        Some(_) => None,
        None => match text {
            "ideal" => Some(Degree::IdealSoliton),
            "robust" => Some(Degree::RobustSoliton),
            "dense" => Some(Degree::Dense),
            _ => None,
        },
    }
}
