//! The programs are beside this file's folder; here the README's examples are tested.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
