//! A writer of MaxMind DB files (format 2.0), for tests of what reads them.

/// A value of a record.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// Text in UTF-8.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A floating number of 64 bits.
    Double(f64),
    /// A floating number of 32 bits.
    Float(f32),
    /// An unsigned number of 16 bits.
    Short(u16),
    /// An unsigned number of 32 bits.
    Number(u32),
    /// A number of 32 bits with a sign.
    Signed(i32),
    /// An unsigned number of 64 bits.
    Long(u64),
    /// An unsigned number of 128 bits.
    Wide(u128),
    /// Yes or no.
    Truth(bool),
    /// Values by name.
    Map(Vec<(&'a str, Value<'a>)>),
    /// Values in order.
    List(Vec<Value<'a>>),
}

/// The build time that every file names, in seconds since 1970.
pub const BUILD_EPOCH: u64 = 1_500_000_000;

/// The start of the part about the file itself.
const METADATA_MARK: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// The bits of an IPv6 address that stand before an IPv4 address in the tree.
const BITS_BEFORE_IPV4: u32 = 96;

/// A network: its address and the number of its leading bits.
pub type Network<'a> = (&'a str, u32);

/// What one side of a node leads to.
#[derive(Clone, Copy)]
enum Next {
    Nothing,
    Node(usize),
    Record(usize),
}

/// The bytes of a file with these networks and their records. Of nested networks, the wider one
/// must stand first.
///
/// # Panics
/// An address cannot be read.
pub fn database(networks: &[(Network<'_>, Value<'_>)]) -> Vec<u8> {
    let mut nodes = vec![[Next::Nothing; 2]];
    let mut records = Vec::new();
    for ((address, bits), record) in networks {
        let (key, bits) = match address.parse().expect(address) {
            std::net::IpAddr::V4(address) => {
                (u128::from(address.to_bits()), bits + BITS_BEFORE_IPV4)
            }
            std::net::IpAddr::V6(address) => (address.to_bits(), *bits),
        };
        insert(&mut nodes, key, bits, records.len());
        write(&mut records, record);
    }
    let mut file = Vec::new();
    for next in nodes.iter().flatten() {
        let number = match next {
            Next::Nothing => nodes.len(),
            Next::Node(node) => *node,
            Next::Record(place) => nodes.len() + 16 + place,
        };
        file.extend_from_slice(&u32::try_from(number).unwrap_or_default().to_be_bytes());
    }
    file.extend_from_slice(&[0; 16]);
    file.extend_from_slice(&records);
    file.extend_from_slice(METADATA_MARK);
    let metadata = Value::Map(vec![
        ("binary_format_major_version", Value::Short(2)),
        ("binary_format_minor_version", Value::Short(0)),
        ("build_epoch", Value::Long(BUILD_EPOCH)),
        ("database_type", Value::Text("Test")),
        ("description", Value::Map(vec![("en", Value::Text("Test"))])),
        ("ip_version", Value::Short(6)),
        ("languages", Value::List(vec![Value::Text("en")])),
        (
            "node_count",
            Value::Number(u32::try_from(nodes.len()).unwrap_or_default()),
        ),
        ("record_size", Value::Short(32)),
    ]);
    write(&mut file, &metadata);
    file
}

fn insert(nodes: &mut Vec<[Next; 2]>, key: u128, bits: u32, record: usize) {
    let side = |depth: u32| usize::from(key >> (127 - depth) & 1 == 1);
    let mut node = 0;
    for depth in 0..bits - 1 {
        node = match nodes[node][side(depth)] {
            Next::Node(next) => next,
            // What holds for the wider network holds for the rest of it.
            inherited => {
                nodes.push([inherited; 2]);
                let next = nodes.len() - 1;
                nodes[node][side(depth)] = Next::Node(next);
                next
            }
        };
    }
    nodes[node][side(bits - 1)] = Next::Record(record);
}

/// Writes a value: its kind and size, then its bytes.
fn write(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Map(entries) => {
            head(out, 7, entries.len());
            for (name, value) in entries {
                write(out, &Value::Text(name));
                write(out, value);
            }
        }
        Value::List(values) => {
            head(out, 11, values.len());
            values.iter().for_each(|value| write(out, value));
        }
        Value::Truth(truth) => head(out, 14, usize::from(*truth)),
        Value::Text(text) => bytes(out, 2, text.as_bytes()),
        Value::Bytes(content) => bytes(out, 4, content),
        Value::Double(number) => bytes(out, 3, &number.to_be_bytes()),
        Value::Float(number) => bytes(out, 15, &number.to_be_bytes()),
        Value::Short(number) => bytes(out, 5, &number.to_be_bytes()),
        Value::Number(number) => bytes(out, 6, &number.to_be_bytes()),
        Value::Signed(number) => bytes(out, 8, &number.to_be_bytes()),
        Value::Long(number) => bytes(out, 9, &number.to_be_bytes()),
        Value::Wide(number) => bytes(out, 10, &number.to_be_bytes()),
    }
}

fn bytes(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    head(out, kind, content.len());
    out.extend_from_slice(content);
}

/// Kinds above 7 stand in a byte of their own; sizes from 29 on in a second one.
fn head(out: &mut Vec<u8>, kind: u8, size: usize) {
    let more = size.checked_sub(29).map(|more| more as u8);
    let size = size.min(29) as u8;
    if kind > 7 {
        out.extend_from_slice(&[size, kind - 7]);
    } else {
        out.push(kind << 5 | size);
    }
    out.extend(more);
}
