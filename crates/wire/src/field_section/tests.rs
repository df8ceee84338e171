use super::*;

#[test]
fn every_byte_survives_the_huffman_code() {
    let all: Vec<u8> = (0..=255).collect();
    for text in [b"".as_slice(), b"aaaaa", b"www.example.com", &all] {
        let mut encoded = Vec::new();
        encode_huffman(text, &mut encoded);
        assert_eq!(encoded.len(), huffman::encoded_bytes(text));
        let mut decoded = Vec::new();
        assert_eq!(decode_huffman(&encoded, &mut decoded), Ok(()));
        assert_eq!(decoded, text);
    }
}
