#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn datagrams_go_and_come_back_by_the_batch() {
    let origin = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(origin.local_addr().unwrap()).unwrap();
    let (mut asking, mut answering) = (Burst::default(), Burst::default());
    assert_eq!(asking.send(&client, 5, 100).unwrap(), 5);
    assert_eq!(answering.receive(&origin).unwrap(), 5);
    assert_eq!(answering.send_back(&origin, 5).unwrap(), 5);
    for _ in 0..5 {
        assert_eq!(client.recv(&mut [0; 200]).unwrap(), 100);
    }
    assert_eq!(asking.send(&client, 1, 1).unwrap(), 1);
    assert_eq!(answering.receive(&origin).unwrap(), 1);
    answering.answer(&origin, 1, (32, 1200));
    for _ in 0..32 {
        assert_eq!(client.recv(&mut [0; 2000]).unwrap(), 1200);
    }
    let patience = std::time::Duration::from_millis(1);
    client.set_read_timeout(Some(patience)).unwrap();
    let nothing = asking.receive(&client).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
}
