//! OpenSSL's names of TLS's numbers, since configurations and logs use them. The registry is IANA's
//! (RFC 8447).

/// The cipher suites that clients may offer, by number.
const CIPHERS: &[(u16, &str)] = &[
    (0x000a, "DES-CBC3-SHA"),
    (0x002f, "AES128-SHA"),
    (0x0033, "DHE-RSA-AES128-SHA"),
    (0x0035, "AES256-SHA"),
    (0x0039, "DHE-RSA-AES256-SHA"),
    (0x003c, "AES128-SHA256"),
    (0x003d, "AES256-SHA256"),
    (0x0067, "DHE-RSA-AES128-SHA256"),
    (0x006b, "DHE-RSA-AES256-SHA256"),
    (0x009c, "AES128-GCM-SHA256"),
    (0x009d, "AES256-GCM-SHA384"),
    (0x009e, "DHE-RSA-AES128-GCM-SHA256"),
    (0x009f, "DHE-RSA-AES256-GCM-SHA384"),
    (0x00ff, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"),
    (0x1301, "TLS_AES_128_GCM_SHA256"),
    (0x1302, "TLS_AES_256_GCM_SHA384"),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256"),
    (0x1304, "TLS_AES_128_CCM_SHA256"),
    (0x5600, "TLS_FALLBACK_SCSV"),
    (0xc009, "ECDHE-ECDSA-AES128-SHA"),
    (0xc00a, "ECDHE-ECDSA-AES256-SHA"),
    (0xc013, "ECDHE-RSA-AES128-SHA"),
    (0xc014, "ECDHE-RSA-AES256-SHA"),
    (0xc023, "ECDHE-ECDSA-AES128-SHA256"),
    (0xc024, "ECDHE-ECDSA-AES256-SHA384"),
    (0xc027, "ECDHE-RSA-AES128-SHA256"),
    (0xc028, "ECDHE-RSA-AES256-SHA384"),
    (0xc02b, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (0xc02f, "ECDHE-RSA-AES128-GCM-SHA256"),
    (0xc030, "ECDHE-RSA-AES256-GCM-SHA384"),
    (0xcca8, "ECDHE-RSA-CHACHA20-POLY1305"),
    (0xcca9, "ECDHE-ECDSA-CHACHA20-POLY1305"),
    (0xccaa, "DHE-RSA-CHACHA20-POLY1305"),
];

/// The groups of the key exchange, by number.
const GROUPS: &[(u16, &str)] = &[
    (0x0017, "prime256v1"),
    (0x0018, "secp384r1"),
    (0x0019, "secp521r1"),
    (0x001d, "X25519"),
    (0x001e, "X448"),
    (0x0100, "ffdhe2048"),
    (0x0101, "ffdhe3072"),
    (0x0102, "ffdhe4096"),
    (0x11eb, "SecP256r1MLKEM768"),
    (0x11ec, "X25519MLKEM768"),
    (0x11ed, "SecP384r1MLKEM1024"),
];

/// The signature algorithms that clients may offer, by number.
const SIGNATURES: &[(u16, &str)] = &[
    (0x0201, "rsa_pkcs1_sha1"),
    (0x0202, "dsa_sha1"),
    (0x0203, "ecdsa_sha1"),
    (0x0301, "rsa_pkcs1_sha224"),
    (0x0302, "dsa_sha224"),
    (0x0303, "ecdsa_sha224"),
    (0x0401, "rsa_pkcs1_sha256"),
    (0x0402, "dsa_sha256"),
    (0x0403, "ecdsa_secp256r1_sha256"),
    (0x0501, "rsa_pkcs1_sha384"),
    (0x0502, "dsa_sha384"),
    (0x0503, "ecdsa_secp384r1_sha384"),
    (0x0601, "rsa_pkcs1_sha512"),
    (0x0602, "dsa_sha512"),
    (0x0603, "ecdsa_secp521r1_sha512"),
    (0x0804, "rsa_pss_rsae_sha256"),
    (0x0805, "rsa_pss_rsae_sha384"),
    (0x0806, "rsa_pss_rsae_sha512"),
    (0x0807, "ed25519"),
    (0x0808, "ed448"),
    (0x0809, "rsa_pss_pss_sha256"),
    (0x080a, "rsa_pss_pss_sha384"),
    (0x080b, "rsa_pss_pss_sha512"),
    (0x081a, "ecdsa_brainpoolP256r1_sha256"),
    (0x081b, "ecdsa_brainpoolP384r1_sha384"),
    (0x081c, "ecdsa_brainpoolP512r1_sha512"),
    (0x0904, "mldsa44"),
    (0x0905, "mldsa65"),
    (0x0906, "mldsa87"),
];

/// OpenSSL's name of a cipher suite.
pub fn cipher_name(number: u16) -> Option<&'static str> {
    name_of(CIPHERS, number)
}

/// Whether OpenSSL has a cipher suite with that name, among those that clients may offer.
pub fn has_cipher(name: &str) -> bool {
    CIPHERS.iter().any(|(_, known)| *known == name)
}

/// OpenSSL's name of a group for the key exchange.
pub fn group_name(number: u16) -> Option<&'static str> {
    name_of(GROUPS, number)
}

/// OpenSSL's name of a signature algorithm.
pub fn signature_name(number: u16) -> Option<&'static str> {
    name_of(SIGNATURES, number)
}

/// The version with this number in a ClientHello, in the format of `$ssl_protocol` and
/// `$ssl_preread_protocol`.
pub fn version_name(version: u16) -> &'static str {
    match version {
        0x0002 => "SSLv2",
        0x0300 => "SSLv3",
        0x0301 => "TLSv1",
        0x0302 => "TLSv1.1",
        0x0303 => "TLSv1.2",
        0x0304 => "TLSv1.3",
        _ => "",
    }
}

fn name_of(table: &[(u16, &'static str)], number: u16) -> Option<&'static str> {
    let found = table.binary_search_by_key(&number, |(number, _)| *number);
    found.ok().map(|at| table[at].1)
}
