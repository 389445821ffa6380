//! The names of the codes, on the wire and in text.

use std::collections::HashSet;

use crate::common::codes;
use cloudburst_core::code::{Code, Degree};

#[test]
fn the_wire_form_of_a_code_parses_to_the_same_code() {
    for code in codes() {
        assert_eq!(Code::from_wire(code.to_wire()), Some(code));
    }
    assert_eq!(Code::Lt(Degree::Fixed(5)).to_wire(), [0x10, 5]);
    assert_eq!(Code::LtSystematic(Degree::Dense).to_wire(), [0x24, 0]);
    assert_eq!(Code::Rlf256.to_wire(), [0x30, 0]);
    assert_eq!(Code::Lt(Degree::Fixed(0)).to_wire(), [0x10, 1]);
}

#[test]
fn each_code_has_its_own_pair_of_bytes() {
    let mut known = HashSet::new();
    for number in 0..=255 {
        for parameter in 0..=255 {
            if let Some(code) = Code::from_wire([number, parameter]) {
                assert_eq!(code.to_wire(), [number, parameter]);
                assert!(known.insert(code));
            }
        }
    }
    // Two families of 255 fixed, 255 uniform and 3 other distributions, RLF-256, and RaptorQ if it
    // is built in.
    assert_eq!(known.len(), 2 * (255 + 255 + 3) + 1 + usize::from(cfg!(feature = "raptorq")));
}

#[test]
fn the_text_of_a_code_parses_to_the_same_code() {
    for code in codes() {
        assert_eq!(code.to_string().parse(), Ok(code));
    }
    assert_eq!("lt".parse(), Ok(Code::Lt(Degree::Fixed(5))));
    assert_eq!("lt-systematic".parse(), Ok(Code::LtSystematic(Degree::Dense)));
    assert_eq!("rlf256".parse(), Ok(Code::default()));
}

#[test]
fn text_that_names_no_code_is_refused_with_a_list_of_codes() {
    let wrong =
        ["", "LT", "lt:", "lt:d", "lt:d=", "lt:d=0", "lt:d=256", "lt:uniform=-1", "rlf256:d=5"];
    for text in wrong {
        assert!(text.parse::<Code>().is_err(), "{text}");
    }
    #[cfg(not(feature = "raptorq"))]
    insta::assert_snapshot!("raptor".parse::<Code>().unwrap_err(), @r#"no code is called "raptor"; there are rlf256, lt, lt:<degree>, lt-systematic and lt-systematic:<degree>, where <degree> is d=<1..255>, uniform=<1..255>, ideal, robust or dense"#);
    #[cfg(feature = "raptorq")]
    insta::assert_snapshot!("raptor".parse::<Code>().unwrap_err(), @r#"no code is called "raptor"; there are rlf256, raptorq, lt, lt:<degree>, lt-systematic and lt-systematic:<degree>, where <degree> is d=<1..255>, uniform=<1..255>, ideal, robust or dense"#);
}

#[cfg(feature = "raptorq")]
#[test]
fn raptorq_has_a_number_and_a_name() {
    assert_eq!(Code::RaptorQ.to_wire(), [0x40, 0]);
    assert_eq!("raptorq".parse(), Ok(Code::RaptorQ));
    assert_eq!(Code::RaptorQ.index_set_len(128), 0);
    for text in ["raptorq:", "raptorq:d=5", "RaptorQ"] {
        assert!(text.parse::<Code>().is_err(), "{text}");
    }
}

#[cfg(not(feature = "raptorq"))]
#[test]
fn raptorq_is_unknown_where_it_is_not_built() {
    assert_eq!(Code::from_wire([0x40, 0]), None);
    let said = "raptorq".parse::<Code>().unwrap_err().to_string();
    assert!(said.contains("built without the feature `raptorq`"), "{said}");
}

#[test]
fn index_sets_have_a_bit_for_each_source_symbol() {
    let lengths = |code: Code| [1, 8, 9, 64, 128].map(|n| code.index_set_len(n));
    assert_eq!(lengths(Code::Lt(Degree::Fixed(5))), [1, 1, 2, 8, 16]);
    assert_eq!(lengths(Code::Rlf256), [0; 5]);
}
