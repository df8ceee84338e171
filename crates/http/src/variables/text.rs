//! How values are written, and names compared.

/// Appends a number in decimal.
pub fn append_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends milliseconds as seconds with three decimals.
pub(super) fn append_seconds(out: &mut Vec<u8>, milliseconds: u64) {
    append_number(out, milliseconds / 1000);
    let rest = milliseconds % 1000;
    let digit = |divisor: u64| b'0' + (rest / divisor % 10) as u8;
    out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
}

/// Whether a field's name is the variable's: case aside, underscores for hyphens.
pub(super) fn same_name(field: &[u8], variable: &[u8]) -> bool {
    field.len() == variable.len()
        && field.iter().zip(variable).all(|(left, right)| {
            let left = if *left == b'-' {
                b'_'
            } else {
                left.to_ascii_lowercase()
            };
            left == *right
        })
}
