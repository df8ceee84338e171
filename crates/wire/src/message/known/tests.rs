use super::*;

#[test]
fn every_name_is_known_in_any_case() {
    for &known in Known::ALL {
        let name = known.name();
        for text in [name.to_string(), name.to_lowercase(), name.to_uppercase()] {
            assert_eq!(Known::of(text.as_bytes()), known, "{text}");
        }
        for index in 0..name.len() {
            let mut other = name.as_bytes().to_vec();
            other[index] = b'q';
            assert_eq!(Known::of(&other), Known::Other, "{name} {index}");
            assert_eq!(
                Known::of(&name.as_bytes()[..index]),
                shorter(&name[..index]),
                "{name}"
            );
        }
    }
    assert_eq!(
        Known::of(b"x-something-that-is-long-and-unknown"),
        Known::Other
    );
    assert_eq!(Known::Other.bit(), 0);
}

/// A few names are the beginning of others.
fn shorter(text: &str) -> Known {
    Known::ALL
        .iter()
        .copied()
        .find(|known| known.name() == text)
        .unwrap_or_default()
}

#[test]
fn bits_fit_and_differ() {
    let all = Known::ALL.iter().fold(0u64, |sum, known| {
        assert_eq!(sum & known.bit(), 0);
        sum | known.bit()
    });
    assert_eq!(all.count_ones() as usize, Known::ALL.len());
}
