//! What the programs that measure on the fabric of namespaces share. Benchmarks live in `benches/`.

pub mod rig;
