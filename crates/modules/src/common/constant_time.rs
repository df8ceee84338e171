//! Comparing secrets.

/// Compares in a time that does not tell how much is the same.
pub(crate) fn equal(left: &[u8], right: &[u8]) -> bool {
    let pairs = left.iter().zip(right);
    left.len() == right.len()
        && pairs.fold(0, |difference, (left, right)| difference | (left ^ right)) == 0
}

#[cfg(test)]
mod tests {
    use super::equal;

    #[test]
    fn only_equal_bytes_are_equal() {
        let cases: [(&[u8], &[u8], bool); 6] = [
            (b"", b"", true),
            (b"ab", b"ab", true),
            (b"ab", b"bb", false),
            (b"ab", b"aa", false),
            (b"ab", b"a", false),
            (b"", b"a", false),
        ];
        for (left, right, expected) in cases {
            assert_eq!(equal(left, right), expected, "{left:?} {right:?}");
        }
    }
}
