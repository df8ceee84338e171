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

/// Host, fields, whether TLS is spoken, and what is written.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    bool,
    &'static str,
);

const FIELDS: &[(&str, &str)] = &[
    ("X-A", " b: c"),
    ("TE", "trailers"),
    ("Connection", "close"),
    ("Transfer-Encoding", "chunked"),
    ("Upgrade", "x"),
    ("Empty", ""),
];

#[test]
fn heads_become_blocks_without_what_is_of_connections() {
    let cases: &[Case] = &[
        (
            "h:1",
            FIELDS,
            false,
            ":method=POST :scheme=http :path=/a?b:c :authority=h:1 x-a=b: c te=trailers empty= ",
        ),
        (
            "h:1",
            FIELDS,
            true,
            ":method=POST :scheme=https :path=/a?b:c :authority=h:1 x-a=b: c te=trailers empty= ",
        ),
        (
            "",
            &[("TE", "gzip")],
            false,
            ":method=POST :scheme=http :path=/a?b:c ",
        ),
    ];
    for (host, fields, is_secure, expected) in cases {
        let (mut out, mut text) = (Vec::new(), Text::default());
        let mut block = RequestBlock::new(&mut out, *is_secure);
        block.line(b"POST", b"/a?b:c");
        block.host(host.as_bytes());
        for (name, value) in *fields {
            block.field(name.as_bytes(), value.as_bytes());
        }
        assert_eq!(Decoder::new(0).decode(&out, &mut text), Ok(()));
        assert_eq!(text.0, *expected);
    }
}
