//! The test vectors of `docs/vectors`, in the format of `docs/spec.md`, section 10.

use std::path::Path;

/// One file.
pub(crate) struct Vectors {
    sections: Vec<(String, Section)>,
}

/// The values of one section, in the order of the file.
pub(crate) struct Section {
    values: Vec<(String, String)>,
}

impl Vectors {
    pub(crate) fn read(file: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors").join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let mut sections: Vec<(String, Section)> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[') {
                let name = name.strip_suffix(']').unwrap().to_string();
                sections.push((name, Section { values: Vec::new() }));
            } else {
                let (key, value) = line.split_once(" = ").unwrap();
                sections.last_mut().unwrap().1.values.push((key.to_string(), value.to_string()));
            }
        }
        Self { sections }
    }

    pub(crate) fn section(&self, name: &str) -> &Section {
        let found = self.sections.iter().find(|(own, _)| own == name);
        &found.unwrap_or_else(|| panic!("no section {name}")).1
    }

    /// The sections of which the name begins with `prefix`, by the rest of the name.
    pub(crate) fn sections<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Section)> {
        let rest = move |name: &'a str| name.strip_prefix(prefix);
        self.sections.iter().filter_map(move |(name, section)| Some((rest(name)?, section)))
    }
}

impl Section {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    /// A value as it is in the file.
    pub(crate) fn hex(&self, key: &str) -> &str {
        self.get(key).unwrap_or_else(|| panic!("no value {key}"))
    }

    pub(crate) fn bytes<const N: usize>(&self, key: &str) -> [u8; N] {
        unhex(self.hex(key)).try_into().unwrap()
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        u64::from_str_radix(self.hex(key), 16).unwrap()
    }

    /// A number that fits into the type.
    pub(crate) fn int<T: TryFrom<u64>>(&self, key: &str) -> T {
        T::try_from(self.number(key)).unwrap_or_else(|_| panic!("{key} is too large"))
    }

    /// The numbers of a value with several parts.
    pub(crate) fn numbers(&self, key: &str) -> impl Iterator<Item = u64> {
        self.hex(key).split(' ').map(|part| u64::from_str_radix(part, 16).unwrap())
    }

    /// All keys and values.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
