//! Waits for datagrams and takes them in batches.

use super::socket::{Lane, plain};
use super::{SHARED, UdpIo};
use cloudburst_core::path::Via;
use core::time::Duration;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg,
};
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::{array, thread};

/// Buffers that one call fills. Each may hold many datagrams that the system has joined.
const BUFFERS: usize = 16;
/// The longest that the system joins.
const BUFFER_LEN: usize = 65_536;
/// Lanes that one wait reports at most; the others' turn is next.
const MAX_READY: usize = 16;
/// What the wait reports where a token is there.
const WAKE: u64 = u64::MAX;
/// Rounds over all lanes that a call without waiting makes at most.
const MAX_ROUNDS: usize = 64;
/// Sockets that claim to be ready so often in a row and have nothing are let rest.
const MAX_FRUITLESS: u32 = 16;
const REST: Duration = Duration::from_millis(1);

/// Receive buffers of one thread at a time.
#[derive(Debug)]
pub(super) struct Batches(Vec<u8>);

/// The lanes that had something when somebody looked.
#[derive(Debug)]
pub struct Ready {
    events: [EpollEvent; MAX_READY],
    found: usize,
    /// Whoever looked would have waited.
    waits: bool,
}

/// What came in one buffer.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    from: SocketAddr,
    len: usize,
    /// Bytes in each datagram but the last.
    segment: usize,
    /// DSCP and ECN, if the system told.
    mark: Option<u8>,
}

/// What waits for all lanes and for tokens. Its cost does not depend on how many there are.
pub(super) fn watch(
    lanes: &[Lane],
    shared: Option<&Lane>,
    wakes: &EventFd,
) -> Result<Epoll, Errno> {
    let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    ready.add(wakes, EpollEvent::new(EpollFlags::EPOLLIN, WAKE))?;
    let shared = shared.map(|lane| (SHARED, lane));
    for (number, lane) in (0..).zip(lanes).chain(shared) {
        ready.add(&lane.socket, EpollEvent::new(EpollFlags::EPOLLIN, u64::from(number)))?;
    }
    Ok(ready)
}

impl UdpIo {
    /// Takes one batch of each lane that is ready: no more if the thread waited for them, because it
    /// has to answer what came; else all that is there.
    pub(super) fn take_ready(&self, mut ready: Ready, deliver: &mut dyn FnMut(Via, &mut [u8])) {
        for _ in 0..MAX_ROUNDS {
            if !self.take_round(&ready, deliver) || ready.waits {
                break;
            }
            ready = self.wait_for_lanes(Duration::ZERO);
        }
    }

    pub(super) fn wake_waiting(&self) {
        // One more than are waiting: another may be about to, and must not miss it because one of
        // them took its token.
        let wanted = self.waiting.load(SeqCst) + 1;
        // No more than that: while everybody looks without waiting they would pile up, and each is a
        // turn of a loop later.
        let there = self.tokens.fetch_max(wanted, SeqCst);
        if let Some(more @ 1..) = wanted.checked_sub(there) {
            // It fails when 2^64 tokens are there: nobody sleeps then.
            let _ = self.wakes.write(more as u64);
        }
    }

    fn take_token(&self) -> bool {
        // Counted out before it is taken: who adds some in between must not count on it.
        let one_less = |there: usize| there.checked_sub(1);
        if self.tokens.fetch_update(SeqCst, SeqCst, one_less).is_err() {
            return false;
        }
        let taken = self.wakes.read().is_ok();
        if !taken {
            self.tokens.fetch_add(1, SeqCst);
        }
        taken
    }

    /// Waits for datagrams or for a token.
    pub(super) fn wait_for_lanes(&self, timeout: Duration) -> Ready {
        let mut events = [EpollEvent::empty(); MAX_READY];
        let waits = !timeout.is_zero();
        self.waiting.fetch_add(usize::from(waits), SeqCst);
        // No lock is held here: several threads may wait.
        let ready = self.ready.wait(&mut events, in_milliseconds(timeout));
        self.waiting.fetch_sub(usize::from(waits), SeqCst);
        let found = match ready {
            Ok(found) => found,
            Err(Errno::EINTR) => 0,
            Err(_) => {
                // Waiting may help here; trying again at once would not.
                self.meter.receive_errors.add(1);
                thread::sleep(REST);
                0
            }
        };
        Ready { events, found, waits }
    }

    /// Takes one batch of each lane that is ready. Returns whether anything came.
    fn take_round(&self, ready: &Ready, deliver: &mut dyn FnMut(Via, &mut [u8])) -> bool {
        if ready.found == 0 {
            return false;
        }
        let mut batches = self.take_batches();
        let (mut came, mut woken) = (0, false);
        for event in &ready.events[..ready.found] {
            if event.data() == WAKE {
                // Not for those who do not wait: they would take the token of one who does.
                woken = !ready.waits || self.take_token();
                continue;
            }
            let number = event.data() as u16;
            let Some(lane) = self.lane(number) else { continue };
            if event.events().intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
                self.take_error(lane);
            }
            came += self.receive_lane(number, lane, &mut batches, deliver);
        }
        self.return_batches(batches);
        self.rest_if_fruitless(came > 0 || woken);
        came > 0
    }

    /// Takes one batch of a lane. Returns how many buffers it filled.
    fn receive_lane(
        &self,
        number: u16,
        lane: &Lane,
        batches: &mut Batches,
        deliver: &mut dyn FnMut(Via, &mut [u8]),
    ) -> usize {
        let mut arrived = [None; BUFFERS];
        let filled = match self.read(lane, batches, &mut arrived) {
            Ok(filled) => filled,
            Err(Errno::EAGAIN | Errno::EINTR) => return 0,
            Err(_) => {
                // An ICMP message about an earlier packet, or trouble with the interface.
                self.meter.receive_errors.add(1);
                return 0;
            }
        };
        self.meter.batches_received.add(filled);
        for (buffer, arrived) in batches.0.chunks_mut(BUFFER_LEN).zip(arrived) {
            let Some(Arrived { from, len, segment, mark }) = arrived else { continue };
            let via = Via { lane: number, remote: from };
            let datagrams = len.div_ceil(segment).max(1);
            self.meter.datagrams_received.add(datagrams);
            if let Some(mark) = mark {
                self.dscps.note(&self.meter, mark, datagrams, from, &buffer[..len]);
            }
            if len == 0 {
                deliver(via, &mut []);
            }
            for datagram in buffer[..len].chunks_mut(segment) {
                deliver(via, datagram);
            }
        }
        filled
    }

    fn read(
        &self,
        lane: &Lane,
        batches: &mut Batches,
        arrived: &mut [Option<Arrived>; BUFFERS],
    ) -> Result<usize, Errno> {
        // New headers for each call: the system shortens them to what it wrote, and a shortened
        // one would have no room for what the next call has to say.
        // Room for the size of segments, the drops, and the mark, which is IPv4's or IPv6's.
        let room = cmsg_space!(i32, u32, i32);
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BUFFERS, Some(room));
        let mut buffers = batches.0.chunks_mut(BUFFER_LEN);
        let mut slices: [[IoSliceMut<'_>; 1]; BUFFERS] =
            array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
        let results = recvmmsg(
            lane.socket.as_raw_fd(),
            &mut headers,
            slices.iter_mut(),
            MsgFlags::MSG_DONTWAIT,
            None,
        )?;
        let mut filled = 0;
        for (message, arrived) in results.zip(arrived) {
            filled += 1;
            *arrived = self.read_header(lane, &message);
        }
        Ok(filled)
    }

    /// What is in the buffer, unless it was cut off.
    fn read_header(
        &self,
        lane: &Lane,
        message: &RecvMsg<'_, '_, SockaddrStorage>,
    ) -> Option<Arrived> {
        let (mut segment, mut mark) = (message.bytes.max(1), None);
        let whole = !message.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC);
        let Some(control) = message.cmsgs().ok().filter(|_| whole) else {
            self.meter.truncated.add(1);
            return None;
        };
        for control in control {
            match control {
                ControlMessageOwned::UdpGroSegments(size) if size > 0 => segment = size as usize,
                ControlMessageOwned::RxqOvfl(drops) => self.count_drops(lane, drops),
                ControlMessageOwned::Ipv4Tos(byte) => mark = Some(byte),
                ControlMessageOwned::Ipv6TClass(class) => mark = u8::try_from(class).ok(),
                _ => {}
            }
        }
        let address = message.address.as_ref()?;
        let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
        let v6 = || address.as_sockaddr_in6().map(|&v6| SocketAddr::V6(v6.into()));
        Some(Arrived { from: plain(v4.or_else(v6)?), len: message.bytes, segment, mark })
    }

    /// Takes in the system's own count, which wraps around, and which another thread may have
    /// read later than this one.
    fn count_drops(&self, lane: &Lane, drops: u32) {
        let newer = |known: u32| {
            let more = drops.wrapping_sub(known);
            (1..u32::MAX / 2).contains(&more).then_some(drops)
        };
        if let Ok(known) = lane.drops.fetch_update(Relaxed, Relaxed, newer) {
            self.meter.kernel_drops.add(drops.wrapping_sub(known) as usize);
        }
    }

    /// Clears a socket's pending error, which would keep it ready for ever.
    fn take_error(&self, lane: &Lane) {
        if let Ok(Some(error)) = lane.socket.take_error() {
            self.meter.receive_errors.add(1);
            tracing::debug!(%error, "a socket reports an error");
        }
    }

    fn rest_if_fruitless(&self, fruitful: bool) {
        if fruitful {
            self.fruitless.store(0, Relaxed);
        } else if self.fruitless.fetch_add(1, Relaxed) >= MAX_FRUITLESS {
            thread::sleep(REST);
        }
    }

    fn take_batches(&self) -> Batches {
        let spare = self.batches.lock().ok().and_then(|mut spare| spare.pop());
        spare.unwrap_or_else(|| Batches(vec![0; BUFFERS * BUFFER_LEN]))
    }

    fn return_batches(&self, batches: Batches) {
        if let Ok(mut spare) = self.batches.lock() {
            spare.push(batches);
        }
    }
}

/// Rounded up: a wait that ends early would be repeated at once.
fn in_milliseconds(timeout: Duration) -> EpollTimeout {
    let millis = timeout.as_nanos().div_ceil(1_000_000);
    EpollTimeout::try_from(millis).unwrap_or(EpollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use crate::io::{UdpConfig, UdpIo};
    use cloudburst_core::burst::PacketIo;
    use core::time::Duration;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::mpsc::channel;
    use std::thread;

    fn open() -> UdpIo {
        let config = UdpConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            reuse_port: false,
            sockets: 1,
            ports: 1,
            flow_labels: 0,
            encapsulates: false,
            dscps: vec![0],
            socket_buffers: 65_536,
        };
        UdpIo::open(&config).unwrap()
    }

    #[test]
    fn a_wake_up_is_kept_for_whoever_is_about_to_wait() {
        let io = Arc::new(open());
        let (woken, ends) = channel();
        let wait = || {
            let (io, woken) = (io.clone(), woken.clone());
            thread::spawn(move || {
                let ready = io.wait(Duration::from_secs(60));
                io.take(ready, &mut |_, _| {});
                woken.send(()).unwrap();
            });
        };
        let ended = || ends.recv_timeout(Duration::from_secs(20)).is_ok();
        wait();
        while io.waiting.load(SeqCst) == 0 {
            thread::yield_now();
        }
        io.wake();
        assert!(ended(), "who was waiting");
        io.take(io.wait(Duration::ZERO), &mut |_, _| {});
        wait();
        assert!(ended(), "who waits from now on, and looked for packets before");
    }

    #[test]
    fn wake_ups_that_nobody_waits_for_do_not_pile_up() {
        let io = open();
        (0..1_000).for_each(|_| io.wake());
        assert!(io.take_token());
        assert!(!io.take_token() && io.wakes.read().is_err());
        io.wake();
        assert!(io.take_token(), "and the next one counts");
    }
}
