//! The additions of a header of version 2, after its addresses.

/// One addition: a type and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'b> {
    /// The type, such as 0x01 for ALPN.
    pub kind: u8,
    /// The bytes.
    pub value: &'b [u8],
}

/// The type of an addition that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(u8);

impl Kind {
    /// The type of the protocol that was agreed on (RFC 7301).
    pub const ALPN: Kind = Kind(0x01);
    /// The type of the server's name that the client asks for.
    pub const AUTHORITY: Kind = Kind(0x02);
    /// The type of an identity of the connection, at most 128 bytes.
    pub const UNIQUE_ID: Kind = Kind(0x05);
    /// The type of the TLS version, such as `TLSv1.3`, in the data about the client's TLS.
    pub const SSL_VERSION: Kind = Kind(0x21);
    /// The type of the common name of the client's certificate, likewise.
    pub const SSL_CN: Kind = Kind(0x22);
    /// The type of the cipher suite by OpenSSL's name, likewise.
    pub const SSL_CIPHER: Kind = Kind(0x23);

    /// The type that a configuration may have sent, by its name or as `0x..`: the numbers are those
    /// for own use (section 2.2 of the specification).
    #[must_use]
    pub fn to_send(name: &str) -> Option<Kind> {
        let kind = match name {
            "alpn" | "authority" | "unique_id" | "netns" => kind_of(name),
            _ => hexadecimal(name).filter(|kind| *kind >= KIND_OWN_MIN),
        };
        kind.map(Kind)
    }

    /// An addition of this type.
    #[must_use]
    pub fn with(self, value: &[u8]) -> Tlv<'_> {
        Tlv {
            kind: self.0,
            value,
        }
    }
}

/// The additions are cut; nginx logs "broken PROXY protocol TLV".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlvError;

/// The sender's data about the client's TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslSummary<'b> {
    /// Bits: 1 for TLS, 2 and 4 for a certificate on this connection or in its session.
    pub client: u8,
    /// 0 if the client's certificate was verified, otherwise the reason of the failure.
    pub verify: u32,
    /// Further additions, for [`find_tlv`].
    pub tlvs: &'b [u8],
}

pub(super) const KIND_CRC32C: u8 = 0x03;
pub(super) const KIND_SSL: u8 = 0x20;

/// The first of the types that the specification leaves to applications.
const KIND_OWN_MIN: u8 = 0xe0;

/// The first addition of a type.
///
/// # Errors
/// [`TlvError`] if the additions before it are broken.
pub fn find_tlv(tlvs: &[u8], kind: u8) -> Result<Option<&[u8]>, TlvError> {
    let mut rest = tlvs;
    while !rest.is_empty() {
        let (head, after) = rest.split_first_chunk::<3>().ok_or(TlvError)?;
        let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
        let (value, after) = after.split_at_checked(length).ok_or(TlvError)?;
        if head[0] == kind {
            return Ok(Some(value));
        }
        rest = after;
    }
    Ok(None)
}

/// The sender's data about the client's TLS, if there is any.
///
/// # Errors
/// [`TlvError`] if it or an addition before it is broken.
pub fn find_ssl(tlvs: &[u8]) -> Result<Option<SslSummary<'_>>, TlvError> {
    let Some(value) = find_tlv(tlvs, KIND_SSL)? else {
        return Ok(None);
    };
    let (fixed, tlvs) = value.split_first_chunk::<5>().ok_or(TlvError)?;
    let [client, verify @ ..] = *fixed;
    Ok(Some(SslSummary {
        client,
        verify: u32::from_be_bytes(verify),
        tlvs,
    }))
}

/// The addition that nginx's `$proxy_protocol_tlv_NAME` means: a name of nginx's list or a type as
/// `0x..`, either also after `ssl_`. `ssl_verify` is a number, and in [`find_ssl`].
///
/// # Errors
/// [`TlvError`] if the additions are broken.
pub fn find_named_tlv<'b>(tlvs: &'b [u8], name: &str) -> Result<Option<&'b [u8]>, TlvError> {
    let (tlvs, kind) = match name.strip_prefix("ssl_") {
        Some(part) => match find_ssl(tlvs)? {
            Some(ssl) => (ssl.tlvs, ssl_kind_of(part)),
            None => return Ok(None),
        },
        None => (tlvs, kind_of(name)),
    };
    match kind {
        Some(kind) => find_tlv(tlvs, kind),
        None => Ok(None),
    }
}

fn kind_of(name: &str) -> Option<u8> {
    match name {
        "alpn" => Some(0x01),
        "authority" => Some(0x02),
        "unique_id" => Some(0x05),
        "ssl" => Some(KIND_SSL),
        "netns" => Some(0x30),
        _ => hexadecimal(name),
    }
}

fn ssl_kind_of(name: &str) -> Option<u8> {
    match name {
        "version" => Some(0x21),
        "cn" => Some(0x22),
        "cipher" => Some(0x23),
        "sig_alg" => Some(0x24),
        "key_alg" => Some(0x25),
        _ => hexadecimal(name),
    }
}

fn hexadecimal(name: &str) -> Option<u8> {
    let digits = name
        .strip_prefix("0x")
        .filter(|digits| !digits.starts_with('+'))?;
    u8::from_str_radix(digits, 16).ok()
}
