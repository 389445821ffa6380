//! What makes no sense is refused, and the refusal names the field and the value.

use cloudburst_netem::{ConfigError, Link, LinkConfig, Loss, Trim};
use core::time::Duration;

fn refusal(config: LinkConfig) -> String {
    let error = Link::new(config, 0).expect_err("the configuration makes no sense");
    error.to_string()
}

#[test]
fn probabilities_lie_between_0_and_1() {
    let base = LinkConfig::default;
    for value in [-0.1, 1.5, f64::NAN, f64::INFINITY] {
        let configs = [
            ("loss", LinkConfig { loss: Loss::Independent(value), ..base() }),
            ("reorder", LinkConfig { reorder: value, ..base() }),
            ("duplicate", LinkConfig { duplicate: value, ..base() }),
            ("corrupt", LinkConfig { corrupt: value, ..base() }),
            ("truncate", LinkConfig { truncate: value, ..base() }),
            ("extend", LinkConfig { extend: value, ..base() }),
        ];
        for (field, config) in configs {
            let expected = format!("`{field}` must be a probability from 0 to 1, got {value}");
            assert_eq!(refusal(config), expected);
        }
    }
}

#[test]
fn all_parameters_of_bursty_loss_are_probabilities() {
    let fields = ["loss.to_bad", "loss.to_good", "loss.loss_good", "loss.loss_bad"];
    for (wrong, field) in fields.into_iter().enumerate() {
        let p = |k| if k == wrong { 2.0 } else { 0.5 };
        let loss = Loss::Bursty { to_bad: p(0), to_good: p(1), loss_good: p(2), loss_bad: p(3) };
        let error = Link::new(LinkConfig { loss, ..LinkConfig::default() }, 0).unwrap_err();
        assert_eq!(error, ConfigError::NotAProbability { field, value: 2.0 });
    }
}

#[test]
fn a_rate_queue_limit_or_class_count_of_zero_is_refused() {
    let base = LinkConfig::default;
    let cases = [
        (
            LinkConfig { rate: Some(0), ..base() },
            "`rate` must be above 0, got 0: such a link never sends",
        ),
        (
            LinkConfig { queue_bytes: Some(0), ..base() },
            "`queue_bytes` must be above 0, got 0: only empty packets would pass",
        ),
        (
            LinkConfig { classes: 0, ..base() },
            "`classes` must be above 0, got 0: every packet needs a class",
        ),
        (
            LinkConfig { rate: Some(1), queue: 0, ..base() },
            "`queue` must be above 0, got 0: the packet being sent takes a place",
        ),
        (
            LinkConfig { trim: Some(Trim { header: 0, queue: 1 }), ..base() },
            "`trim.header` must be above 0, got 0: nothing would be left of a packet",
        ),
        (
            LinkConfig { trim: Some(Trim { header: 1, queue: 0 }), ..base() },
            "`trim.queue` must be above 0, got 0: no trimmed packet would pass",
        ),
        (
            LinkConfig { mtu: Some(0), ..base() },
            "`mtu` must be above 0, got 0: only empty packets would pass",
        ),
        (
            LinkConfig { reorder: 0.1, ..base() },
            "`reorder_by` must be above 0, got 0: \
             a packet held back for no time is overtaken by none",
        ),
    ];
    for (config, expected) in cases {
        assert_eq!(refusal(config), expected);
    }
}

#[test]
fn limits_are_inclusive_and_unused_fields_are_left_alone() {
    let base = LinkConfig::default;
    assert_eq!(base().check(), Ok(()));
    assert_eq!(LinkConfig { queue: 0, ..base() }.check(), Ok(()));
    assert_eq!(LinkConfig { reorder_by: Duration::MAX, ..base() }.check(), Ok(()));
    for p in [0.0, 1.0] {
        let reorder_by = Duration::from_nanos(1);
        let config = LinkConfig {
            loss: Loss::Independent(p),
            reorder: p,
            reorder_by,
            duplicate: p,
            corrupt: p,
            truncate: p,
            extend: p,
            ..base()
        };
        assert_eq!(config.check(), Ok(()));
    }
}
