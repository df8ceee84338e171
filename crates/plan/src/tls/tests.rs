//! Tests of the tables of names.

use super::{cipher_name, group_name, signature_name};

#[test]
fn numbers_have_openssls_names() {
    let ciphers = [
        (0x000a, Some("DES-CBC3-SHA")),
        (0x1301, Some("TLS_AES_128_GCM_SHA256")),
        (0xc02f, Some("ECDHE-RSA-AES128-GCM-SHA256")),
        (0xccaa, Some("DHE-RSA-CHACHA20-POLY1305")),
        (0x0a0a, None),
    ];
    for (number, name) in ciphers {
        assert_eq!(cipher_name(number), name, "{number:#06x}");
    }
    let groups = [
        (0x0017, Some("prime256v1")),
        (0x001d, Some("X25519")),
        (0x11ec, Some("X25519MLKEM768")),
        (0x1a1a, None),
    ];
    for (number, name) in groups {
        assert_eq!(group_name(number), name, "{number:#06x}");
    }
    let signatures = [
        (0x0201, Some("rsa_pkcs1_sha1")),
        (0x0403, Some("ecdsa_secp256r1_sha256")),
        (0x0804, Some("rsa_pss_rsae_sha256")),
        (0x0906, Some("mldsa87")),
        (0x2a2a, None),
    ];
    for (number, name) in signatures {
        assert_eq!(signature_name(number), name, "{number:#06x}");
    }
}
