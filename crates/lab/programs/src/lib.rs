//! Code shared by the programs that measure on the fabric of namespaces.

pub mod rig;
