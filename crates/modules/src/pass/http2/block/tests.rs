use turnpike_wire::h2::hpack::{Decoder, FieldSink};

use super::*;

#[derive(Default)]
struct Text(String);

impl FieldSink for Text {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let (name, value) = (
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(value),
        );
        self.0 += &format!("{name}={value} ");
    }
}

const HEAD: &[u8] = b"POST /a?b:c HTTP/1.1\r\nHost: h:1\r\nX-A: b: c\r\nTE: trailers\r\n\
    Connection: close\r\nTransfer-Encoding: chunked\r\nUpgrade: x\r\nEmpty: \r\n\r\n";

#[test]
fn heads_become_blocks_without_what_is_of_connections() {
    let cases: &[(&[u8], bool, Authority, &str)] = &[
        (
            HEAD,
            false,
            Authority::Pseudo,
            ":method=POST :scheme=http :path=/a?b:c :authority=h:1 x-a=b: c te=trailers empty= ",
        ),
        (
            HEAD,
            true,
            Authority::Field,
            ":method=POST :scheme=https :path=/a?b:c host=h:1 x-a=b: c te=trailers empty= ",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: \r\nTE: gzip\r\n\r\n",
            false,
            Authority::Pseudo,
            ":method=GET :scheme=http :path=/ ",
        ),
    ];
    for (head, is_secure, authority, expected) in cases {
        let (mut block, mut text) = (Vec::new(), Text::default());
        write_block(head, *is_secure, *authority, &mut block);
        assert_eq!(Decoder::new(0).decode(&block, &mut text), Ok(()));
        assert_eq!(text.0, *expected);
    }
}
