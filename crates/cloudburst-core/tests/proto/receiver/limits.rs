//! Limits at the ends of their ranges.

use super::crowd::{Crowd, Says};
use cloudburst_core::config::{Config, Tuning};

#[test]
fn any_number_of_peers_that_the_configuration_accepts_can_be_received_from() {
    for max_peers in [1, usize::MAX / 2 + 1, usize::MAX] {
        let mut crowd = Crowd::new(Config {
            tuning: Tuning { max_peers: Some(max_peers), ..Tuning::default() },
            ..Config::default()
        });
        let mut peer = crowd.meet(1);
        assert!(crowd.delivers(&mut peer, Says::whole(0, 100)), "{max_peers}");
    }
}
