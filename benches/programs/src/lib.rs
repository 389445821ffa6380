//! What the programs that measure on the fabric of namespaces share.

pub mod rig;
