//! Switches to configure: two leaves, four spines and eight hosts, on every platform; and a switch of
//! 32 ports.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "all of it is for tests, which may panic")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// How the program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cbrst-switch"));
    command.args(args);
    command
}

/// Runs the program to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ended {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: stderr.trim_end().to_owned(),
    }
}

/// A platform, its ports of a leaf with four hosts and four spines, and 32 of them.
pub(crate) struct Platform {
    pub(crate) name: &'static str,
    pub(crate) ports: &'static [&'static str],
    pub(crate) many: &'static str,
    aeolus: bool,
    decapsulates: bool,
}

const fn platform(
    name: &'static str,
    ports: &'static [&'static str],
    many: &'static str,
) -> Platform {
    Platform { name, ports, many, aeolus: false, decapsulates: false }
}

impl Platform {
    const fn with_aeolus(self) -> Self {
        Self { aeolus: true, ..self }
    }

    const fn with_decapsulation(self) -> Self {
        Self { decapsulates: true, ..self }
    }
}

#[rustfmt::skip]
pub(crate) const PLATFORMS: [Platform; 10] = [
    platform("picos",
        &["ge-1/1/1", "ge-1/1/2", "ge-1/1/3", "ge-1/1/4", "te-1/1/49", "te-1/1/50", "te-1/1/51",
          "te-1/1/52"],
        "te-1/1/[1-32]"),
    platform("sonic",
        &["Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12", "Ethernet16", "Ethernet20",
          "Ethernet24", "Ethernet28"],
        "Ethernet[0-124/4]").with_aeolus().with_decapsulation(),
    platform("cumulus4", &["swp1", "swp2", "swp3", "swp4", "swp5", "swp6", "swp7", "swp8"],
        "swp[1-32]"),
    platform("cumulus5", &["swp1", "swp2", "swp3", "swp4", "swp5", "swp6", "swp7", "swp8"],
        "swp[1-32]").with_aeolus(),
    platform("os10",
        &["ethernet1/1/1", "ethernet1/1/2", "ethernet1/1/3", "ethernet1/1/4", "ethernet1/1/5",
          "ethernet1/1/6", "ethernet1/1/7", "ethernet1/1/8"],
        "ethernet1/1/[1-32]").with_aeolus(),
    platform("eos",
        &["Ethernet1", "Ethernet2", "Ethernet3", "Ethernet4", "Ethernet5", "Ethernet6",
          "Ethernet7", "Ethernet8"],
        "Ethernet[1-32]").with_aeolus().with_decapsulation(),
    platform("nxos",
        &["Ethernet1/1", "Ethernet1/2", "Ethernet1/3", "Ethernet1/4", "Ethernet1/5",
          "Ethernet1/6", "Ethernet1/7", "Ethernet1/8"],
        "Ethernet1/[1-32]").with_aeolus().with_decapsulation(),
    platform("iosxe",
        &["GigabitEthernet1", "GigabitEthernet2", "GigabitEthernet3", "GigabitEthernet4",
          "TenGigabitEthernet0/0/1", "TenGigabitEthernet0/0/2", "TenGigabitEthernet0/0/3",
          "TenGigabitEthernet0/0/4"],
        "TenGigabitEthernet0/0/[0-31]").with_aeolus(),
    platform("openconfig",
        &["Ethernet1", "Ethernet2", "Ethernet3", "Ethernet4", "Ethernet5", "Ethernet6",
          "Ethernet7", "Ethernet8"],
        "Ethernet[1-32]").with_aeolus(),
    platform("linux", &["h1", "h2", "h3", "h4", "s1", "s2", "s3", "s4"], "swp[1-32]").with_aeolus().with_decapsulation(),
];

pub(crate) fn find(name: &str) -> &'static Platform {
    PLATFORMS.iter().find(|platform| platform.name == name).unwrap()
}

impl Platform {
    fn start(&self, name: &str, role: &str, ports: &[&str]) -> String {
        format!(
            "platform = \"{}\"\nname = \"{name}\"\nrole = \"{role}\"\nports = {ports:?}\n\
             dscp = 43\nqueue = 5\nbuffer = \"4M\"\n",
            self.name
        )
    }

    /// Leaf 1 or 2, with a path to a host of the other leaf by way of each spine.
    pub(crate) fn leaf(&self, leaf: u32) -> String {
        let mut text = self.start(&format!("l{leaf}"), "leaf", self.ports);
        text += "limit = \"8 packets\"\nrate = \"10G\"\nweights = { tiny = 1, default = 3 }\n\
                 pfc = [3]\n";
        text += match self.name {
            // These platforms map all 64 DSCPs, so those with PFC must be among them.
            "sonic" | "cumulus4" => "classes = { 3 = 3, 46 = 6, 48 = 6 }\n",
            "openconfig" | "iosxe" | "linux" => "",
            _ => "classes = { 46 = 6, 48 = 6 }\n",
        };
        let _ = writeln!(text, "seed = {leaf}");
        if self.aeolus {
            text += "aeolus = \"6144 bytes\"\n";
        }
        let (other, host) = if leaf == 1 { (2, 5) } else { (1, 1) };
        for spine in 1..=4 {
            let port = self.ports[3 + spine];
            let _ = write!(
                text,
                "[[routes]]\nto = \"10.10{spine}.{other}.{host}/32\"\nvia = \"10.3.0.{spine}\"\n\
                 port = \"{port}\"\n"
            );
        }
        text
    }

    /// Spine 1 to 4, with the path to host 5 at leaf 2.
    pub(crate) fn spine(&self, spine: u32) -> String {
        let mut text = self.start(&format!("s{spine}"), "spine", &self.ports[..2]);
        text += "limit = \"10192 bytes\"\nrate = \"10G\"\nweights = { tiny = 1, default = 1 }\n";
        let _ = writeln!(text, "seed = {}", spine + 1);
        if self.decapsulates {
            let _ = writeln!(text, "decapsulate = \"10.3.0.{spine}\"");
        }
        let port = self.ports[1];
        let _ = write!(
            text,
            "[[routes]]\nto = \"10.10{spine}.2.5/32\"\nvia = \"10.2.0.2\"\nport = \"{port}\"\n"
        );
        text
    }

    /// Spine 1 with three DSCPs, and selective dropping where the platform has a template for it.
    pub(crate) fn classes(&self) -> String {
        let text = self.spine(1).replace("dscp = 43\n", "dscps = [43, 45, 47]\n");
        if self.aeolus { format!("aeolus = \"6144 bytes\"\n{text}") } else { text }
    }

    /// A switch of 32 ports, with the paper's share of the buffer.
    pub(crate) fn many(&self) -> String {
        let mut text = self.start("t1", "leaf", &[self.many]);
        text += "limit = \"1 %\"\nrate = \"40G\"\nseed = 5\n";
        text
    }
}

/// A directory with parameters and the files rendered from them.
pub(crate) struct Rendered {
    dir: TempDir,
    /// The output of the program.
    pub(crate) printed: String,
}

impl Rendered {
    pub(crate) fn of(parameters: &str) -> Self {
        let (dir, ended) = render(parameters, &[]);
        let printed = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ended.code, Some(0), "{printed}{}\n{parameters}", ended.stderr);
        Self { dir, printed }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join("out").join(file)
    }

    /// All files, by name.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| {
                let entry = entry.unwrap();
                let text = fs::read_to_string(entry.path()).unwrap();
                (entry.file_name().into_string().unwrap(), text)
            })
            .collect();
        files.sort();
        files
    }

    pub(crate) fn check(&self) -> Ended {
        let files: Vec<_> = self.files().into_iter().map(|(name, _)| self.path(&name)).collect();
        self.check_files(&files)
    }

    pub(crate) fn check_files(&self, files: &[PathBuf]) -> Ended {
        let mut check = command(&["check", "--params"]);
        check.arg(self.dir.path().join("params.toml")).args(files);
        run(&mut check)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

/// Renders the parameters. Returns the directory and how the program ended.
pub(crate) fn render(parameters: &str, flags: &[&str]) -> (TempDir, Ended) {
    let dir = tempfile::tempdir().unwrap();
    let params = dir.path().join("params.toml");
    let out = dir.path().join("out");
    fs::write(&params, parameters).unwrap();
    let mut render = command(&["render", "--params"]);
    render.arg(&params).arg("--out").arg(&out).args(flags);
    (dir, run(&mut render))
}
