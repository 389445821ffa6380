//! The bytes of symbols, which are part of the wire contract and must never change.

use std::fmt::Write;

use crate::common::{CODES, message, shape, symbol};
use cloudburst_core::code::{Code, Encoder};

const SPELLED_OUT: [&str; 8] = [
    "lt:d=1",
    "lt:d=2",
    "lt:d=5",
    "lt:uniform=9",
    "lt:ideal",
    "lt:robust",
    "lt-systematic:dense",
    "rlf256",
];
const LARGER: [&str; 8] = [
    "lt:d=4",
    "lt:d=5",
    "lt:uniform=9",
    "lt:ideal",
    "lt:robust",
    "lt:dense",
    "lt-systematic:d=5",
    "rlf256",
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// n = 4, T = 4, and two bytes of padding.
fn spell_out(table: &mut String, code: Code, ids: impl Iterator<Item = u32>) {
    let encoder = Encoder::new(code, shape(4, 4), message(14)).unwrap();
    writeln!(table, "{code}").unwrap();
    for id in ids {
        let (index_set, payload) = symbol(&encoder, id);
        writeln!(table, "{id:>10} {:2} {}", hex(&index_set), hex(&payload)).unwrap();
    }
}

#[test]
fn small_blocks_spelled_out() {
    let mut table = String::new();
    for name in SPELLED_OUT {
        spell_out(&mut table, name.parse().unwrap(), (0..8).chain([255, 256, 257, u32::MAX]));
    }
    insta::assert_snapshot!(table, @r"
    lt:d=1
             0 40 83a2c1e0
             1 40 83a2c1e0
             2 80 07264564
             3 80 07264564
             4 20 ff1e3d5c
             5 80 07264564
             6 80 07264564
             7 40 83a2c1e0
           255 80 07264564
           256 20 ff1e3d5c
           257 20 ff1e3d5c
    4294967295 80 07264564
    lt:d=2
             0 90 7cbc4564
             1 50 f838c1e0
             2 50 f838c1e0
             3 50 f838c1e0
             4 d0 ff1e8484
             5 a0 f8387838
             6 a0 f8387838
             7 50 f838c1e0
           255 30 84843d5c
           256 70 0726fcbc
           257 70 0726fcbc
    4294967295 60 7cbcfcbc
    lt:d=5
             0 50 f838c1e0
             1 50 f838c1e0
             2 20 ff1e3d5c
             3 c0 84848484
             4 b0 83a27838
             5 20 ff1e3d5c
             6 30 84843d5c
             7 70 0726fcbc
           255 30 84843d5c
           256 80 07264564
           257 b0 83a27838
    4294967295 70 0726fcbc
    lt:uniform=9
             0 90 7cbc4564
             1 50 f838c1e0
             2 40 83a2c1e0
             3 40 83a2c1e0
             4 d0 ff1e8484
             5 10 7b9a0000
             6 10 7b9a0000
             7 50 f838c1e0
           255 10 7b9a0000
           256 70 0726fcbc
           257 70 0726fcbc
    4294967295 20 ff1e3d5c
    lt:ideal
             0 90 7cbc4564
             1 50 f838c1e0
             2 40 83a2c1e0
             3 40 83a2c1e0
             4 a0 f8387838
             5 10 7b9a0000
             6 10 7b9a0000
             7 50 f838c1e0
           255 10 7b9a0000
           256 30 84843d5c
           257 60 7cbcfcbc
    4294967295 20 ff1e3d5c
    lt:robust
             0 90 7cbc4564
             1 50 f838c1e0
             2 40 83a2c1e0
             3 40 83a2c1e0
             4 a0 f8387838
             5 10 7b9a0000
             6 10 7b9a0000
             7 50 f838c1e0
           255 10 7b9a0000
           256 30 84843d5c
           257 60 7cbcfcbc
    4294967295 20 ff1e3d5c
    lt-systematic:dense
             0 80 07264564
             1 40 83a2c1e0
             2 20 ff1e3d5c
             3 10 7b9a0000
             4 b0 83a27838
             5 20 ff1e3d5c
             6 30 84843d5c
             7 70 0726fcbc
           255 30 84843d5c
           256 80 07264564
           257 b0 83a27838
    4294967295 70 0726fcbc
    rlf256
             0    07264564
             1    83a2c1e0
             2    ff1e3d5c
             3    7b9a0000
             4    0000b9d8
             5    d65c1d08
             6    c7846961
             7    fd11f176
           255    a7153747
           256    3f4e13e7
           257    a7b5c01f
    4294967295    00dc3db1
    ");
}

#[test]
fn index_sets_and_coefficients_of_larger_blocks() {
    let mut table = String::new();
    for name in LARGER {
        let encoder = Encoder::new(name.parse().unwrap(), shape(64, 64), identity(64)).unwrap();
        writeln!(table, "{name}").unwrap();
        for id in [0, 63, 64, 65, 255, 256, u32::MAX] {
            let (index_set, payload) = symbol(&encoder, id);
            let shown = if index_set.is_empty() { hex(&payload) } else { hex(&index_set) };
            writeln!(table, "{id:>10} {shown}").unwrap();
        }
    }
    insta::assert_snapshot!(table, @r"
    lt:d=4
             0 2020400008000000
            63 0400000200004101
            64 0000000002004041
            65 8080000100000004
           255 0000000031001000
           256 0000200100480001
    4294967295 0000001200090000
    lt:d=5
             0 2020440008000000
            63 0400000200002480
            64 0000400002004041
            65 8090000100000004
           255 0004000031001000
           256 0000200080280004
    4294967295 2000001200090000
    lt:uniform=9
             0 2020400008000000
            63 0410404c00020400
            64 0000000001004020
            65 0040000000000001
           255 0000000010000801
           256 0000200100480001
    4294967295 0000000000020000
    lt:ideal
             0 2010000000000000
            63 0410404c00020400
            64 0000000001000010
            65 0040000000000001
           255 0000000008000400
           256 0000100080040000
    4294967295 0000000100020000
    lt:robust
             0 2010000000000000
            63 285162d004840006
            64 0000000001000010
            65 0040000000000001
           255 0000000008000400
           256 0000100080040000
    4294967295 0000000000020000
    lt:dense
             0 5c56277c2b749271
            63 e2491114b7b3bd1a
            64 4b8ceccaace54244
            65 2fb91ecdff7e949a
           255 39c9381afc839990
           256 894b8fec8387ead8
    4294967295 0938f76f430805b8
    lt-systematic:d=5
             0 8000000000000000
            63 0000000000000001
            64 0000400002004041
            65 8090000100000004
           255 0004000031001000
           256 0000200080280004
    4294967295 2000001200090000
    rlf256
             0 01000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
            63 00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001
            64 01010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101
            65 5e37d4f94f9305a789311f2a6617924422398d691b806024c01262ca0f96403656255acbc5b84c168c53b2eeed21332ed029d810fae878db76daba07cc85fdff
           255 b188d237c5f7e19e36fb6fdd94dc7cba71c6c06b63857aabe6051a4159c3cbf86410f3f52d19603e823d2177fc890351b20b549d30e04344ef4634fa39e3ec5d
           256 ba3a364bbde205b8fe2f0dab9ff3ba66a1d80dc22759afe86a4c4f69e23fb30ce37fbf58409f0fc4e9c4e82b92a81db790d89894fb58ba0b5671df7bf8f09637
    4294967295 42bced309c42612e26ebbe21f124e50b307954a2cc2f3c33311edb0fc9f39a8c4461e59d9032e06f1387222a2b62fe77ec5c367408ecfd0c3aeb60d857fb5c8e
    ");
}

fn identity(n: usize) -> bytes::Bytes {
    (0..n * n).map(|i| u8::from(i % (n + 1) == 0)).collect()
}

fn hash(table: &mut String, code: Code) {
    writeln!(table, "{code}").unwrap();
    for (n, size) in [(1, 1), (4, 4), (14, 9), (64, 1408), (128, 33)] {
        let encoder = Encoder::new(code, shape(n, size), message(n * size - size / 2)).unwrap();
        let mut hasher = blake3::Hasher::new();
        for id in 0..300 {
            let (index_set, payload) = symbol(&encoder, id);
            hasher.update(&index_set).update(&payload);
        }
        writeln!(table, "{n:>4} x {size:<4} {}", hasher.finalize().to_hex()).unwrap();
    }
}

#[cfg(feature = "raptorq")]
#[test]
fn raptorq_spelled_out() {
    let mut table = String::new();
    let beyond = 1 << 24;
    spell_out(&mut table, Code::RaptorQ, (0..8).chain([255, 256, beyond - 1, beyond, u32::MAX]));
    hash(&mut table, Code::RaptorQ);
    // The values for n = 4 were also computed from the text of RFC 6330, without the library.
    insta::assert_snapshot!(table, @r"
    raptorq
             0    07264564
             1    83a2c1e0
             2    ff1e3d5c
             3    7b9a0000
             4    aa3546a0
             5    588b0bfc
             6    50b973c9
             7    46aa0dc3
           255    1831c763
           256    62f5c992
      16777215    afcd8bfc
      16777216    aa3546a0
    4294967295    51ba3c34
    raptorq
       1 x 1    47d5b4b230c7607888876da7d8beb62d20c6dd98ca970bba2aa395c92278db81
       4 x 4    95c543a4cab5d586eef3c606c8e0d7439ca9221764856ca6eee79bc04bf23e4e
      14 x 9    a1df682c7b181345f2344ee7e50b6b0a803401592672b67e1a3be209fe0b48fe
      64 x 1408 d7eff10fd8e7dcfd9c8f99f9ed94744d0eda3c80a0ee4e64f1045c6ce768ee7c
     128 x 33   f7ed8158943af56488c5a6ebae7a3ecf70f96c67596eba933c134e484f612b56
    ");
}

#[test]
fn hashes_of_the_first_300_symbols() {
    let mut table = String::new();
    for name in CODES.split_whitespace() {
        hash(&mut table, name.parse().unwrap());
    }
    insta::assert_snapshot!(table, @r"
    lt:d=1
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    478f5059e158cf0a3d167d769172f36a510912278bf202b22b7ddf88e421e185
      14 x 9    882f1923098a90829d00c73233dbe9f9d42c975a7be159b4e5af314e31aadbb8
      64 x 1408 5b38cfa1e54bd8606ed75f807be6d9109ce9457095955e4f0e873e704c29676d
     128 x 33   d374e35799c3b05a80e393dd3d185b0dc33b46a67085a013e60a2d593515c1a9
    lt:d=2
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    3f3271bd36ff5d7f256e9acb1f4dcb6809036c13f2fbf5861ae4fc1e2bc6d76a
      14 x 9    c6e6c1861c92ff8cd1edf3f2b157ef766e0619cc692b0d25ee980390c31d965e
      64 x 1408 f26c3dbbdda7fd20e957b7ed34af542e450b23c98aa4830404d1f6195164d91e
     128 x 33   a34de88c46082815b624a9564534d58a14069f9901243e728d1e3204cb20bb40
    lt:d=4
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    0cf9c19976bdb768eea78ce1e8c12ca7fa8d8b7bd869a07a70ed7fc92c36909a
      14 x 9    c281154924df4e27a59a7eeda5cea4ce07c89427d92a5228903299909db757c9
      64 x 1408 8f8e18934ccab7abb10ee77c075aa9bb498fff9feda230f014ffc3127f8aa9d4
     128 x 33   840f7263c6daa8d5ed082ff491544aac64d5ed3d1aaa519619700edbf8d609c0
    lt:d=5
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    0cf9c19976bdb768eea78ce1e8c12ca7fa8d8b7bd869a07a70ed7fc92c36909a
      14 x 9    17fc35cbd17f4f38b5739842390cac0b7392d8efd3cab0c707bc17f50019f772
      64 x 1408 e4a7b1bf8a4135cdc515c68c176194791f7622e63c4aab3d581313dbf90143a1
     128 x 33   c64d000aadad6e1e3617ed3fdb2986e6bbeb326866cec50dd5a18fefb1ce85da
    lt:d=9
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    0cf9c19976bdb768eea78ce1e8c12ca7fa8d8b7bd869a07a70ed7fc92c36909a
      14 x 9    77d28455c47c0436e56ed7aa84e45e157af964e6b65a2b774b4e945d2a4d3cd6
      64 x 1408 6512fd26fe5f1ebab46b4be53ea407de1cb2a1fb3e1b09241456388bad0f9cd3
     128 x 33   d73ecb33ada6f030008983700d45f11090d926cd53e0d9d428affde5e26aaaa4
    lt:d=128
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    0cf9c19976bdb768eea78ce1e8c12ca7fa8d8b7bd869a07a70ed7fc92c36909a
      14 x 9    77d28455c47c0436e56ed7aa84e45e157af964e6b65a2b774b4e945d2a4d3cd6
      64 x 1408 540f4e4a9f6a2cbb5b25b035260b6022d44ab61118d9ea4166e95a342bff45e2
     128 x 33   519bde1a2dc1a509c3b9c45b22e737c3272708256c953051372600108005b719
    lt:d=255
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    0cf9c19976bdb768eea78ce1e8c12ca7fa8d8b7bd869a07a70ed7fc92c36909a
      14 x 9    77d28455c47c0436e56ed7aa84e45e157af964e6b65a2b774b4e945d2a4d3cd6
      64 x 1408 540f4e4a9f6a2cbb5b25b035260b6022d44ab61118d9ea4166e95a342bff45e2
     128 x 33   519bde1a2dc1a509c3b9c45b22e737c3272708256c953051372600108005b719
    lt:uniform=1
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    2176a01efbd8e6feedfd5fb2501635746726c56b19d0401c46fd398940630e72
      14 x 9    a1869f2a0c7fe3f9d95dc5ec6df55665f176f1f24a8f43c002c32746e7b33185
      64 x 1408 497dd3b4a08cafef2371b3c925215966a15c8294dab8ba0f2ac23d515bd15d30
     128 x 33   491d6bf4cf5b8ad2e4e839dc6241e8c9f764858eda5fbea0010c917fc86d9401
    lt:uniform=9
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    5457912d503b5a3f7387cc8ae6136b965968d2cbb2fc4161b7422bbf03986d00
      14 x 9    f6af8d1486fea9a0c619ecea47d133e074107ecd58eb589f93e1b8673394b48b
      64 x 1408 bbaa07a12d2e9503b2000520224a41de3a789b9bc6b97adf65287170afccb0e9
     128 x 33   6f0ec89dc90436f7db256eb4d1c9f89e1b629fee75775db11a0ae7d71c52a09b
    lt:ideal
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    e6c6da4d846af0e0521c23664ecad05444ee64167af463fd4adf6659c62f46b3
      14 x 9    3c40ba6c9b3a6d319378128605d7f5e81157dcf8e1197e0d0023b5359da6b044
      64 x 1408 ae5df9d9408944c8ea9d0c80a029d33ee51da35ad3f2d8d79ef24be4cb3b3d1c
     128 x 33   53c5540b5bc19b0c1ac87cf29ea6431c930e033857ba847cdae605ff461741ac
    lt:robust
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    7027c2473d073c80ba0954545a88cb6837f052ea899a1a87e7e24a23356f600c
      14 x 9    1a9ba9608d9f43ec5674d01a87f13c4e90281d059f72e842cdadbbe06870ae8b
      64 x 1408 8443edd0fa74a3d425a647024ad9d112c8bc615700a937996238649b8e3da54e
     128 x 33   03c7656390a911abda48d36acb50196528a17bc02a39f1ac77e33b1576a6903e
    lt:dense
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    0cf9c19976bdb768eea78ce1e8c12ca7fa8d8b7bd869a07a70ed7fc92c36909a
      14 x 9    77d28455c47c0436e56ed7aa84e45e157af964e6b65a2b774b4e945d2a4d3cd6
      64 x 1408 540f4e4a9f6a2cbb5b25b035260b6022d44ab61118d9ea4166e95a342bff45e2
     128 x 33   519bde1a2dc1a509c3b9c45b22e737c3272708256c953051372600108005b719
    lt-systematic:d=5
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    a297e25c1d99afb67b654c64abb9d6d675e74120e1b71512c053d49bcbcc9afb
      14 x 9    98418f24a876b506720eab015d96213ec1144d3e8ab21718a1600943b067acde
      64 x 1408 2e0e63e8d339591971788d36cd4aba53b4fb2001e2eb954fba9ae972c75d3f2e
     128 x 33   2daae8e1d8de095a039efed12745944f98dd501e3a8394600ad3da79678a7ac2
    lt-systematic:uniform=20
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    5a228958511fbbdd80bf4f63b3a18ad9654f1fc2a3cc3274cec8c02083f7e12f
      14 x 9    5a88f2c3eefc9c4b2702613798f49813c2633e30f9cb364ac5c37a2e17df361c
      64 x 1408 a4ff77daf8b37534b64ff31342857a1dbfe5db2629473b9a7ebbf167e4ce98b0
     128 x 33   ec6eefaa9ce2136e4783f74922bad9798f9bd56a45b298e2bf017c58473bedb4
    lt-systematic:robust
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    ab1c275df45293ad37140184f027361787fd7af314f882f259bd49652a0da4e1
      14 x 9    67730b8096f92d98cd1b7ac5961c81ea110a9e759ba47030d245f249775ff881
      64 x 1408 26e5db2cfdcf25476faa5c47043bd7313e238765d2f615505adb43eb5f97e1c3
     128 x 33   14decdc3d92cf31326a936fabc213a703d2ee0f582b6603ca11471b18ad97e97
    lt-systematic:dense
       1 x 1    0e7935ea7198db5a620a95e5709c3b91b5f6c604cec653118c6e98cf38785574
       4 x 4    a297e25c1d99afb67b654c64abb9d6d675e74120e1b71512c053d49bcbcc9afb
      14 x 9    cfd49eb9cf48046a42c505903376b9269cd36a909e59fd7887e73503d3ca5d97
      64 x 1408 e49f0fe6f5bcd6135973c457bb3aa998412fed68ae995d18f1a286b84c62d54b
     128 x 33   92243712ad0ec0f8539293ff57b56b1e259a88e1690e6dafe6ce12d410333138
    rlf256
       1 x 1    f4cabf8630f0771cc7c067d0375fce68e562ce3f7e879403741dd32abed0b51b
       4 x 4    55bb0c49f8008d45c64a4e3c94166d638394ecfe56555ec7a34328f779fa0acc
      14 x 9    39e2d312fb10ecb8b7f010a47c52542771009c1af31e87bb0cb99c16d53bd47a
      64 x 1408 539f1565e35cba7855dbe7320e54d0edec25d2996765b97e99de140c7ac51456
     128 x 33   d93059a72f4619882c298471ba0130cbf2dbecbbe3d1e3d1f36041ea52b26741
    ");
}
