//! Tests of each call, on the loopback and in the temporary folder.

#![allow(clippy::unwrap_used)]

use std::{
    fs::File,
    io::{self, IoSlice, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
};

use super::{
    descriptor::{self, Waker},
    epoll::{Epoll, EventBuffer, Interest},
    file::{self, Links, Purpose},
    inotify::{Change, ChangeQueue},
    mapping::SharedWords,
    process, reuseport,
    socket::{self, Family, Kind, More, PeerAddress},
    socket_option as option, with_c_path,
};

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("lane-sys-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn gate(address: &str) -> (OwnedFd, SocketAddr) {
    let address: SocketAddr = address.parse().unwrap();
    let family = if address.is_ipv4() {
        Family::V4
    } else {
        Family::V6
    };
    let gate = socket::open(family, Kind::Stream).unwrap();
    socket::bind(gate.as_fd(), address).unwrap();
    socket::listen(gate.as_fd(), 5).unwrap();
    let address = socket::local_address(gate.as_fd()).unwrap().inet().unwrap();
    (gate, address)
}

fn wait_readable(descriptor: &OwnedFd) {
    let epoll = Epoll::new().unwrap();
    epoll.add(descriptor.as_fd(), Interest::READ, 1).unwrap();
    while epoll.wait(&mut EventBuffer::with_capacity(1), -1).unwrap() == 0 {}
}

#[test]
fn a_connection_is_accepted_with_its_peer_and_carries_bytes_both_ways() {
    for family in ["127.0.0.1:0", "[::1]:0"] {
        let (gate, address) = gate(family);
        let empty = socket::accept(gate.as_fd()).unwrap_err();
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
        let mut client = TcpStream::connect(address).unwrap();
        let (connection, peer) = socket::accept(gate.as_fd()).unwrap();
        assert_eq!(peer, PeerAddress::Inet(client.local_addr().unwrap()));

        client.write_all(b"question").unwrap();
        wait_readable(&connection);
        let mut buffer = [0; 64];
        assert_eq!(socket::peek(connection.as_fd(), &mut buffer).unwrap(), 8);
        assert_eq!(socket::receive(connection.as_fd(), &mut buffer).unwrap(), 8);
        assert_eq!(&buffer[..8], b"question");
        let dry = socket::receive(connection.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(dry.kind(), io::ErrorKind::WouldBlock);

        assert_eq!(
            socket::send(connection.as_fd(), b"an ", More::Yes).unwrap(),
            3
        );
        let slices = [IoSlice::new(b"ans"), IoSlice::new(b"wer")];
        assert_eq!(
            socket::send_vectored(connection.as_fd(), &slices, More::No).unwrap(),
            6
        );
        socket::shutdown(connection.as_fd(), Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "an answer");
    }
}

#[test]
fn sending_to_a_gone_peer_is_an_error_and_no_signal() {
    let (ours, theirs) = descriptor::socket_pair().unwrap();
    drop(theirs);
    let error = socket::send(ours.as_fd(), b"x", More::No).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn options_are_taken_and_read_back() {
    let (gate, address) = gate("127.0.0.1:0");
    let fd = gate.as_fd();
    type Step = (&'static str, io::Result<()>);
    let steps: [Step; 13] = [
        ("nodelay", option::set_no_delay(fd, true)),
        ("keepalive", option::set_keepalive(fd, true)),
        ("quickack", option::acknowledge_without_delay(fd)),
        ("idle", option::set_keepalive_idle_s(fd, 30)),
        ("interval", option::set_keepalive_interval_s(fd, 5)),
        ("count", option::set_keepalive_count(fd, 3)),
        ("rcvbuf", option::set_receive_buffer_bytes(fd, 16384)),
        ("sndbuf", option::set_send_buffer_bytes(fd, 16384)),
        ("deferred", option::set_deferred_accept_s(fd, 0)),
        ("fastopen", option::set_fast_open_queue(fd, 16)),
        ("reuseaddr", option::set_reuse_address(fd, true)),
        ("reuseport", option::set_reuse_port(fd, true)),
        ("reset", option::set_reset_on_close(fd)),
    ];
    for (name, result) in steps {
        assert!(result.is_ok(), "{name}: {result:?}");
    }
    assert!(option::is_listening(fd).unwrap());
    assert_eq!(option::receive_buffer_bytes(fd).unwrap(), 32768);
    assert_eq!(option::send_buffer_bytes(fd).unwrap(), 32768);

    let _clients = [
        TcpStream::connect(address).unwrap(),
        TcpStream::connect(address).unwrap(),
    ];
    let info = option::tcp_info(fd).unwrap();
    assert_eq!(
        (info.state, info.accept_queue),
        (option::TCP_STATE_LISTEN, 2)
    );
    assert_eq!(info.accept_queue_max, 5);
}

#[test]
fn the_cpu_filter_needs_a_reuseport_socket() {
    let plain = socket::open(Family::V4, Kind::Stream).unwrap();
    assert!(reuseport::attach_cpu_filter(plain.as_fd(), 2).is_err());
    let shared = socket::open(Family::V4, Kind::Stream).unwrap();
    option::set_reuse_port(shared.as_fd(), true).unwrap();
    socket::bind(shared.as_fd(), "127.0.0.1:0".parse().unwrap()).unwrap();
    assert!(reuseport::attach_cpu_filter(shared.as_fd(), 0).is_err());
    reuseport::attach_cpu_filter(shared.as_fd(), 2).unwrap();
    reuseport::detach(shared.as_fd()).unwrap();
}

#[test]
fn unix_sockets_bind_by_path_and_hide_their_peers() {
    let path = scratch("unix").join("socket");
    let _ = std::fs::remove_file(&path);
    let path = path.as_os_str().as_encoded_bytes();
    let gate = socket::open(Family::Unix, Kind::Stream).unwrap();
    socket::bind_unix(gate.as_fd(), path).unwrap();
    socket::listen(gate.as_fd(), 5).unwrap();
    let mut buffer = [0; 108];
    let length = socket::local_unix_path(gate.as_fd(), &mut buffer).unwrap();
    assert_eq!(&buffer[..length], path);
    let client = socket::open(Family::Unix, Kind::Stream).unwrap();
    socket::connect_unix(client.as_fd(), path).unwrap();
    assert_eq!(socket::accept(gate.as_fd()).unwrap().1, PeerAddress::Unix);
    file::unlink(path).unwrap();

    for (bad, errno) in [
        (vec![b'x'; 108], libc::ENAMETOOLONG),
        (vec![], libc::EINVAL),
    ] {
        let error = socket::bind_unix(client.as_fd(), &bad).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(errno));
    }
}

#[test]
fn paths_are_limited_as_in_the_kernel() {
    let fits = vec![b'a'; super::PATH_BYTES_MAX - 1];
    let cases: [(&[u8], Option<i32>); 4] = [
        (b"/etc", None),
        (&fits, None),
        (&[b'a'; super::PATH_BYTES_MAX], Some(libc::ENAMETOOLONG)),
        (b"/etc\0/passwd", Some(libc::EINVAL)),
    ];
    for (path, errno) in cases {
        let result = with_c_path(path, |path| Ok(path.to_bytes().to_vec()));
        match errno {
            None => assert_eq!(result.unwrap(), path),
            Some(errno) => assert_eq!(result.unwrap_err().raw_os_error(), Some(errno)),
        }
    }
}

#[test]
fn files_open_and_read_with_metadata() {
    let folder = scratch("file");
    let (plain, link) = (folder.join("plain"), folder.join("link"));
    std::fs::write(&plain, b"0123456789").unwrap();
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink("plain", &link).unwrap();
    let bytes = |path: &PathBuf| path.as_os_str().as_encoded_bytes().to_vec();

    let opened = file::open(&bytes(&link), Purpose::Read, Links::Follow).unwrap();
    let metadata = file::metadata(opened.as_fd()).unwrap();
    assert!(metadata.is_file() && metadata.size_bytes == 10);
    assert_eq!(
        metadata,
        file::metadata_of(&bytes(&plain), Links::Follow).unwrap()
    );
    assert!(
        file::metadata_of(&bytes(&link), Links::Refuse)
            .unwrap()
            .is_symlink()
    );
    let refused = file::open(&bytes(&link), Purpose::Read, Links::Refuse).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::ELOOP));

    let root = file::open(&bytes(&folder), Purpose::LocateDirectory, Links::Refuse).unwrap();
    assert!(file::metadata(root.as_fd()).unwrap().is_directory());
    let below = file::open_at(root.as_fd(), b"plain", Purpose::Read, Links::Refuse).unwrap();
    let mut buffer = [0; 4];
    assert_eq!(file::read_at(below.as_fd(), &mut buffer, 8).unwrap(), 2);
    assert_eq!(&buffer[..2], b"89");
    assert!(file::read_at(below.as_fd(), &mut buffer, u64::MAX).is_err());

    let (ours, theirs) = descriptor::socket_pair().unwrap();
    assert_eq!(
        file::send_file(ours.as_fd(), below.as_fd(), 3, 4).unwrap(),
        4
    );
    assert_eq!(
        file::send_file(ours.as_fd(), below.as_fd(), 10, 4).unwrap(),
        0
    );
    assert_eq!(socket::receive(theirs.as_fd(), &mut buffer).unwrap(), 4);
    assert_eq!(&buffer, b"3456");

    let log = folder.join("log");
    let _ = std::fs::remove_file(&log);
    for line in [b"one\n", b"two\n"] {
        let log = file::open_append(&bytes(&log), 0o644).unwrap();
        file::write_all(log.as_fd(), line).unwrap();
    }
    assert_eq!(std::fs::read(&log).unwrap(), b"one\ntwo\n");
}

#[test]
fn a_parcel_brings_its_bytes_and_descriptors_in_order() {
    for (length, count) in [(0, 0), (1, 1), (10, 253), (300_000, 254), (5, 600)] {
        let (ours, theirs) = descriptor::socket_pair().unwrap();
        let wakers: Vec<Waker> = (0..count).map(|_| Waker::new().unwrap()).collect();
        let sent: Vec<u8> = (0..length).map(|index| index as u8).collect();
        let copy = sent.clone();
        let sender = std::thread::spawn(move || {
            let fds: Vec<_> = wakers.iter().map(|waker| waker.as_fd()).collect();
            descriptor::send_parcel(ours.as_fd(), &copy, &fds).unwrap();
            wakers
        });
        let (bytes, fds) = descriptor::receive_parcel(theirs.as_fd(), 300_000).unwrap();
        let wakers = sender.join().unwrap();
        assert_eq!((bytes, fds.len()), (sent, count));
        for (waker, received) in wakers.iter().zip(&fds) {
            waker.wake().unwrap();
            assert_eq!(file::read(received.as_fd(), &mut [0; 8]).unwrap(), 8);
            assert!(!waker.drain().unwrap());
        }
    }
}

#[test]
fn a_parcel_too_long_or_cut_off_is_refused() {
    let (ours, theirs) = descriptor::socket_pair().unwrap();
    descriptor::send_parcel(ours.as_fd(), b"12345", &[]).unwrap();
    let error = descriptor::receive_parcel(theirs.as_fd(), 4).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);

    let (ours, theirs) = descriptor::socket_pair().unwrap();
    socket::send(ours.as_fd(), &[9, 0, 0], More::No).unwrap();
    drop(ours);
    let error = descriptor::receive_parcel(theirs.as_fd(), 4).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn only_inherited_descriptors_are_adopted_and_only_once() {
    for number in [-1, 0, 2] {
        assert!(descriptor::adopt_inherited(number).is_err(), "{number}");
    }
}

#[test]
fn a_waker_reaches_epoll_with_its_token() {
    let (epoll, waker) = (Epoll::new().unwrap(), Waker::new().unwrap());
    let mut buffer = EventBuffer::with_capacity(8);
    epoll.add(waker.as_fd(), Interest::READ, u64::MAX).unwrap();
    assert_eq!(epoll.wait(&mut buffer, 0).unwrap(), 0);
    waker.wake().unwrap();
    assert_eq!(epoll.wait(&mut buffer, -1).unwrap(), 1);
    let event = buffer.iter().next().unwrap();
    assert_eq!(
        (event.token, event.is_readable(), event.is_hang_up()),
        (u64::MAX, true, false)
    );
    assert_eq!((buffer.at(0), buffer.at(1)), (Some(event), None));
    assert!(waker.drain().unwrap());
    epoll
        .modify(waker.as_fd(), Interest::READ | Interest::EDGE, 7)
        .unwrap();
    assert_eq!(epoll.wait(&mut buffer, 0).unwrap(), 0);
    epoll.delete(waker.as_fd()).unwrap();
    assert!(epoll.delete(waker.as_fd()).is_err());
    assert!(epoll.wait(&mut EventBuffer::with_capacity(0), 0).is_err());
}

#[test]
fn a_thread_keeps_the_cpus_it_is_given() {
    let allowed = process::thread_affinity().unwrap();
    let word = allowed.iter().position(|word| *word != 0).unwrap();
    let mut one = vec![0; word + 1];
    one[word] = 1 << allowed[word].trailing_zeros();
    std::thread::spawn(move || {
        process::set_thread_affinity(&one).unwrap();
        assert_eq!(process::thread_affinity().unwrap(), one);
        assert!(process::set_thread_affinity(&[0]).is_err());
        process::set_thread_name(c"lane 0").unwrap();
    })
    .join()
    .unwrap();
    assert!(process::cpu_count() >= 1);
    let limit = process::limit(process::Resource::OpenFiles).unwrap();
    process::set_limit(process::Resource::OpenFiles, limit).unwrap();
    assert!(process::fork().is_err(), "the test runner has threads");
}

#[test]
fn shared_words_are_shared_and_zeroed() {
    let words = SharedWords::anonymous(513).unwrap();
    assert_eq!(words.words().len(), 513);
    assert_eq!(
        words.words()[512].fetch_add(2, std::sync::atomic::Ordering::Relaxed),
        0
    );
    assert!(SharedWords::anonymous(0).is_err());
}

#[test]
fn memory_is_shared_by_its_descriptor_and_keeps_its_size() {
    let memory = SharedWords::create(64).unwrap();
    assert!(SharedWords::is_memory(memory.as_fd(), 64));
    assert!(!SharedWords::is_memory(memory.as_fd(), 65));
    let ours = SharedWords::map(memory.as_fd(), 64).unwrap();
    let theirs = SharedWords::map(memory.as_fd(), 64).unwrap();
    ours.words()[63].store(7, std::sync::atomic::Ordering::Relaxed);
    let read = theirs.words()[63].load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(read, 7);
    let file = File::from(memory);
    assert!(file.set_len(8).is_err(), "a mapping would lose its pages");
    let other = File::open("/dev/null").unwrap();
    assert!(!SharedWords::is_memory(other.as_fd(), 64));
}

/// What is done to a file, and whether its queue tells of it.
type Deed = (&'static str, fn(&std::path::Path), bool);

const DEEDS: &[Deed] = &[
    ("read", |path| drop(std::fs::read(path).unwrap()), false),
    (
        "write",
        |path| std::fs::write(path, "changed").unwrap(),
        true,
    ),
    (
        "replace",
        |path| {
            std::fs::write(path.with_extension("new"), "other").unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
        },
        true,
    ),
    ("remove", |path| std::fs::remove_file(path).unwrap(), true),
];

#[test]
fn a_queue_tells_of_changes_of_watched_files() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = scratch("inotify");
    for (name, deed, is_told) in DEEDS {
        let path = folder.join(name);
        std::fs::write(&path, "before").unwrap();
        let queue = ChangeQueue::new().unwrap();
        let watch = queue.watch(path.as_os_str().as_bytes()).unwrap();
        assert_eq!(queue.watch(path.as_os_str().as_bytes()).unwrap(), watch);
        // Held open, as by a lane: the file itself is there still.
        let held = File::open(&path).unwrap();
        deed(&path);
        let mut told = Vec::new();
        while queue.take(|change| told.push(change)).unwrap() {}
        assert_eq!(
            told.contains(&Change::File(watch)),
            *is_told,
            "{name}: {told:?}"
        );
        queue.unwatch(watch).unwrap();
        drop(held);
        told.clear();
        assert!(queue.take(|change| told.push(change)).unwrap(), "{name}");
        assert_eq!(told.last(), Some(&Change::Unwatched(watch)), "{name}");
        assert!(queue.unwatch(watch).is_err(), "{name}");
    }
    let missing = ChangeQueue::new().unwrap().watch(b"/none/at/all");
    assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    std::fs::remove_dir_all(folder).unwrap();
}
