//! The programs beside this file show Cloudburst with `tower`, OpenTelemetry and Prometheus.
//!
//! They are a package of their own so that the examples that a beginner runs first compile few crates.
