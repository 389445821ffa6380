//! Instruction counts of the hot paths, by callgrind: `scripts/bench instructions`, which compares the counts
//! with `benches/instructions.tsv`.
//!
//! | benchmark | what is counted |
//! |---|---|
//! | `packet_sent` | polling a packet of a message of 93,000 bytes from its sender |
//! | `packet_received` | handing such a packet to the receiver, whose block stays incomplete |
//! | `message` | one message, both ends: from `send` to the sender's event that it was delivered |
//! | `encode` | the second repair symbol of 64 by `rlf256`, with this kernel |
//! | `decode` | decoding 64 symbols by `rlf256`, 20 % lost, likewise |
//! | `seal`, `open` | a packet of 1,400 bytes |
//!
//! A benchmark whose name ends in `_of_N` does the same N times, and the script divides by N.
//!
//! Endpoints share a session and have exchanged messages of the same length before. Valgrind supports
//! neither AVX-512 nor GFNI: kernels that use them are not counted, and endpoints use the one for AVX2.

use std::process::{Command, Stdio};

/// Counts under `cargo bench`, and when it runs itself under Valgrind, but not under `cargo test`.
fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let counted = args.first().is_some_and(|arg| arg == "--gungraun-run");
    if counted || args.iter().any(|arg| arg == "--bench") && has_runner() {
        counts::run();
    }
}

fn has_runner() -> bool {
    let mut version = Command::new("gungraun-runner");
    let there = version.arg("--version").stdout(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("instructions: SKIPPED: gungraun-runner is missing; scripts/setup installs it");
    }
    there
}

mod counts {
    use super::pair::{Batch, Pair};
    use super::{code, packet};
    use bytes::Bytes;
    use cloudburst_core::code::{Decoder, Encoder};
    use cloudburst_core::wire::seal::{Opener, Sealer};
    use gungraun::{
        Callgrind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
    };

    /// Packets polled, of the 66 that a message of 93,000 bytes needs.
    const PACKETS: usize = 64;

    #[library_benchmark(setup = Pair::sending)]
    #[bench::of_64(93_000, PACKETS)]
    fn packet_sent((mut pair, mut batches): (Pair, Vec<Batch>)) -> (Pair, Vec<Batch>) {
        pair.transmit(PACKETS, &mut batches);
        (pair, batches)
    }

    #[library_benchmark(setup = Pair::sent)]
    #[bench::of_64(93_000, PACKETS)]
    fn packet_received((mut pair, mut batches): (Pair, Vec<Batch>)) -> (Pair, Vec<Batch>) {
        pair.receive(&mut batches);
        (pair, batches)
    }

    #[library_benchmark(setup = Pair::warm)]
    #[bench::bytes_5000_of_8(5_000, 8)]
    #[bench::bytes_93000_of_8(93_000, 8)]
    fn message((mut pair, messages): (Pair, Vec<Bytes>)) -> Pair {
        for bytes in messages {
            pair.deliver(bytes);
        }
        pair
    }

    #[library_benchmark(setup = code::encoder)]
    #[bench::avx2("avx2")]
    #[bench::portable("portable")]
    fn encode((encoder, mut payload): (Encoder, Vec<u8>)) -> (Encoder, Vec<u8>) {
        encoder.encode(code::SECOND_REPAIR, &mut [], &mut payload);
        (encoder, payload)
    }

    #[library_benchmark(setup = code::received)]
    #[bench::avx2("avx2")]
    #[bench::portable("portable")]
    fn decode((mut decoder, symbols): (Decoder, Vec<code::Symbol>)) -> impl Sized {
        for (esi, payload) in &symbols {
            decoder.receive(*esi, &[], payload).expect("a symbol of this block");
        }
        assert!(decoder.is_complete());
        (decoder, symbols)
    }

    #[library_benchmark(setup = packet::unsealed)]
    #[bench::bytes_1400()]
    fn seal((mut sealer, mut packet): (Sealer, Vec<u8>)) -> (Sealer, Vec<u8>) {
        sealer.seal(&mut packet, 0, packet::PREFIX_LEN);
        (sealer, packet)
    }

    #[library_benchmark(setup = packet::sealed)]
    #[bench::bytes_1400()]
    fn open((mut opener, number, mut packet): (Opener, u64, Vec<u8>)) -> (Opener, Vec<u8>) {
        opener.open(number, &mut packet, packet::PREFIX_LEN).expect("it has just been sealed");
        (opener, packet)
    }

    library_benchmark_group!(
        name = all,
        benchmarks = [packet_sent, packet_received, message, encode, decode, seal, open]
    );

    main!(
        config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
        library_benchmark_groups = all
    );

    pub(super) fn run() {
        main();
    }
}

/// Two endpoints, their session, and a network that delivers at once.
mod pair {
    use bytes::Bytes;
    use cloudburst_core::config::{Config, ListenPorts, Security, Tuning};
    use cloudburst_core::error::Outcome;
    use cloudburst_core::path::{Egresses, Via};
    use cloudburst_core::proto::{Contents, Event, SendOptions, Transceiver, Transmit};
    use cloudburst_core::rng::Seed;
    use cloudburst_core::time::Instant;
    use std::net::SocketAddr;
    use std::time::Duration;

    const PATHS: u16 = 4;
    /// The time between two batches; at the rate of these endpoints, pacing delays none.
    const STEP: Duration = Duration::from_micros(1);
    /// Enough messages that tables have grown and estimates have samples.
    const EARLIER_MESSAGES: usize = 32;

    const LONGEST_BATCH: usize = 1 << 16;

    /// A batch and its datagrams.
    pub(super) type Batch = (Transmit, Vec<u8>);

    pub(super) struct Pair {
        // Boxed, because each benchmark moves a pair, which is large.
        sender: Box<Transceiver>,
        receiver: Box<Transceiver>,
        now: Instant,
        /// The buffer for batches that are not kept.
        buffer: Vec<u8>,
        /// The buffers for batches that are kept.
        spare: Vec<Vec<u8>>,
    }

    impl Pair {
        fn new() -> Self {
            let now = Instant::from_nanos(1_000_000_000);
            let [sender, receiver] = [1, 2].map(|host| {
                let ports = ListenPorts::one(address(host).port());
                // A fixed train length, so that sixteen trains have 64 packets.
                let config = Config {
                    capacity: 1_000_000_000_000.into(),
                    tuning: Tuning { train: 4, ..Tuning::default() },
                    ..Config::default()
                };
                let security = Security::pre_shared([7; 32]);
                let seed = Seed::new([host; 32]);
                let paths = Box::new(Egresses(PATHS));
                let endpoint = Transceiver::new(config, ports, &security, seed, paths);
                Box::new(endpoint.expect("the configuration is in range"))
            });
            Self {
                sender,
                receiver,
                now,
                buffer: Vec::with_capacity(LONGEST_BATCH),
                spare: Vec::new(),
            }
        }

        /// Warms up a pair, and also makes messages of this length to send.
        pub(super) fn warm(len: usize, messages: usize) -> (Self, Vec<Bytes>) {
            let mut pair = Self::new();
            let message = || Bytes::from(vec![7; len]);
            for _ in 0..EARLIER_MESSAGES {
                pair.deliver(message());
            }
            (pair, (0..messages).map(|_| message()).collect())
        }

        /// Returns a pair with a message of which no packet was sent yet, and buffers for `packets` packets.
        pub(super) fn sending(len: usize, packets: usize) -> (Self, Vec<Batch>) {
            let (mut pair, messages) = Self::warm(len, 1);
            pair.spare = (0..packets).map(|_| Vec::with_capacity(LONGEST_BATCH)).collect();
            for bytes in messages {
                pair.send(bytes);
            }
            (pair, Vec::with_capacity(packets))
        }

        /// Returns a pair with packets of a message that were sent and have not arrived.
        pub(super) fn sent(len: usize, packets: usize) -> (Self, Vec<Batch>) {
            let (mut pair, mut batches) = Self::sending(len, packets);
            pair.transmit(packets, &mut batches);
            (pair, batches)
        }

        /// Sends a message until its sender knows that it was delivered.
        pub(super) fn deliver(&mut self, bytes: Bytes) {
            let len = bytes.len();
            self.send(bytes);
            loop {
                self.now += STEP;
                exchange(self.now, (&mut *self.sender, 1), &mut self.receiver, &mut self.buffer);
                while self.receiver.poll_event().is_some() {}
                if let Some(message) = self.receiver.recv() {
                    assert_eq!(message.bytes.len(), len);
                }
                exchange(self.now, (&mut *self.receiver, 2), &mut self.sender, &mut self.buffer);
                while let Some(event) = self.sender.poll_event() {
                    if let Event::Ended(_, outcome) = event {
                        assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
                        return;
                    }
                }
            }
        }

        fn send(&mut self, bytes: Bytes) {
            let options = SendOptions::default();
            self.sender
                .send(self.now, address(2), bytes, &options)
                .expect("there is capacity for one message");
        }

        /// Polls this many packets.
        pub(super) fn transmit(&mut self, packets: usize, batches: &mut Vec<Batch>) {
            let mut sent = 0;
            while sent < packets {
                self.now += STEP;
                let mut buffer = self.spare.pop().expect("one for each packet");
                let transmit = self
                    .sender
                    .poll_transmit(self.now, &mut buffer)
                    .expect("there are more symbols to send");
                assert!(matches!(transmit.contents, Contents::Symbols { .. }));
                sent += transmit.len.div_ceil(transmit.segment_size);
                batches.push((transmit, buffer));
            }
            assert_eq!(sent, packets, "the counts are divided by this");
        }

        pub(super) fn receive(&mut self, batches: &mut [Batch]) {
            for (transmit, buffer) in batches {
                self.now += STEP;
                receive(self.now, &mut self.receiver, 1, transmit, buffer);
            }
        }
    }

    fn address(host: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], 7000))
    }

    /// Hands one batch of `host` to the other end.
    fn exchange(
        now: Instant,
        (from, host): (&mut Transceiver, u8),
        to: &mut Transceiver,
        buffer: &mut Vec<u8>,
    ) {
        buffer.clear();
        if let Some(transmit) = from.poll_transmit(now, buffer) {
            receive(now, to, host, &transmit, buffer);
        }
    }

    fn receive(
        now: Instant,
        to: &mut Transceiver,
        from: u8,
        transmit: &Transmit,
        packets: &mut [u8],
    ) {
        let via = Via { egress: transmit.via.egress, local: None, remote: address(from) };
        for packet in packets.chunks_mut(transmit.segment_size) {
            to.handle_datagram(now, via, packet);
        }
    }
}

mod code {
    use bytes::Bytes;
    use cloudburst_core::code::{BlockShape, Code, Decoder, Encoder, Kernel};
    use cloudburst_core::rng::SplitMix64;

    const SOURCE_SYMBOLS: u32 = 64;
    const SYMBOL_SIZE: usize = 1_408;
    /// The second repair symbol, because the first needs no products.
    pub(super) const SECOND_REPAIR: u32 = SOURCE_SYMBOLS + 1;

    /// A symbol's ESI and payload.
    pub(super) type Symbol = (u32, Vec<u8>);

    /// An encoder and a symbol to write.
    pub(super) fn encoder(name: &str) -> (Encoder, Vec<u8>) {
        let mut rng = SplitMix64::new(64);
        let len = SOURCE_SYMBOLS as usize * SYMBOL_SIZE;
        let block: Bytes = (0..len).map(|_| rng.next_u64() as u8).collect();
        let encoder = Encoder::with_trailer(kernel(name), Code::Rlf256, shape(), block, &[])
            .expect("the block has this shape");
        (encoder, vec![0; SYMBOL_SIZE])
    }

    /// A decoder and its input: every fifth source symbol is lost.
    pub(super) fn received(name: &str) -> (Decoder, Vec<Symbol>) {
        let (encoder, _) = encoder(name);
        let symbols = (0..).filter(|esi| *esi >= SOURCE_SYMBOLS || esi % 5 != 0).map(|esi| {
            let mut payload = vec![0; SYMBOL_SIZE];
            encoder.encode(esi, &mut [], &mut payload);
            (esi, payload)
        });
        let decoder = Decoder::with_kernel(kernel(name), Code::Rlf256, shape());
        (decoder, symbols.take(SOURCE_SYMBOLS as usize).collect())
    }

    fn shape() -> BlockShape {
        BlockShape::new(SOURCE_SYMBOLS as usize, SYMBOL_SIZE).expect("a block may have 64 symbols")
    }

    fn kernel(name: &str) -> Kernel {
        Kernel::available()
            .find(|kernel| kernel.to_string() == name)
            .expect("scripts/bench instructions asks for a processor with AVX2")
    }
}

mod packet {
    use cloudburst_core::id::{PathId, SessionId};
    use cloudburst_core::wire::Prefix;
    use cloudburst_core::wire::keys::SessionKeys;
    use cloudburst_core::wire::keys::SessionSecrets;
    pub(super) use cloudburst_core::wire::packet::PREFIX_LEN;
    use cloudburst_core::wire::seal::{Opener, Sealer, TAG_LEN};

    const LEN: usize = 1_400;

    /// A packet without its tag.
    pub(super) fn unsealed() -> (Sealer, Vec<u8>) {
        let mut sealer = Sealer::new(keys().forward.symbols);
        // The first use of a cipher detects the processor's features.
        sealer.seal(&mut write(&sealer), 0, PREFIX_LEN);
        let packet = write(&sealer);
        (sealer, packet)
    }

    pub(super) fn sealed() -> (Opener, u64, Vec<u8>) {
        let (mut sealer, mut packet) = unsealed();
        let number = sealer.next_number();
        sealer.seal(&mut packet, 0, PREFIX_LEN);
        (Opener::new(keys().forward.symbols), number, packet)
    }

    fn write(sealer: &Sealer) -> Vec<u8> {
        let mut packet = Vec::with_capacity(LEN);
        Prefix::answer(0, PathId(0), sealer.session(), sealer.next_number()).write(&mut packet);
        packet.resize(LEN - TAG_LEN, 7);
        packet
    }

    fn keys() -> SessionKeys {
        let secrets = SessionSecrets { k1: [1; 32], k2: [2; 32] };
        SessionKeys::new(&secrets, SessionId(3), SessionId(4))
    }
}
