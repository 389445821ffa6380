//! A short soak, in which each kind of fault fires once or twice.
//!
//! Needs root, iproute2, nftables and ethtool. If they are missing, the test is ignored, and the reason is printed.

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::Command;

fn main() {
    let args = Arguments::from_args();
    let available = if args.list { Ok(()) } else { cloudburst_testbed::available() };
    if let Err(reason) = &available {
        println!("soak: ignored: {reason}");
    }
    let trial = Trial::test("a_short_soak_breaks_no_promise", a_short_soak_breaks_no_promise);
    libtest_mimic::run(&args, vec![trial.with_ignored_flag(available.is_err())]).exit();
}

fn a_short_soak_breaks_no_promise() -> Result<(), Failed> {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_soak"));
    // 25 s. The machine may be busy with other tests, so that messages and outcomes are late.
    soak.args(["--hours", "0.007", "--rate", "200", "--patience", "20", "--seed", "1"]);
    let output = soak.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)).into())
}
