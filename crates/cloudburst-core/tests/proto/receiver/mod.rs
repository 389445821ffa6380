//! The receiving half alone, with hand-made peers.

#![allow(dead_code, reason = "each behaviour uses its part of the crowd")]

mod crowd;
mod fair_answers;
mod full;
mod limits;
mod overtaking;
mod pace;
mod peers;
mod random;
mod replays;
mod spoofed;
mod unserved;
