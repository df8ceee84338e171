//! What a response says of its body, where a filter makes another body of it.

use turnpike_http::response::Response;

/// Makes a response one whose text is changed on its way: its length is not known, parts of it are
/// not offered, and it has another `Last-Modified` and `ETag` than the text had, so none at all.
/// Where `Last-Modified` is kept, so is a weak `ETag`: the text is the same but for what is put in.
pub(crate) fn change_text(response: &mut Response, keeps_last_modified: bool) {
    lose_length(response);
    if keeps_last_modified {
        weaken(response.etag_mut());
        return;
    }
    response.set_last_modified(None);
    response.etag_mut().clear();
    response.fields_mut().remove(b"Last-Modified");
}

/// Makes the length of a response's body unknown, so that parts of it cannot be asked for.
pub(crate) fn lose_length(response: &mut Response) {
    response.set_content_length(None);
    response.set_ranges_allowed(false);
    response.fields_mut().remove(b"Accept-Ranges");
}

/// Makes an entity tag a weak one (RFC 9110 section 8.8.1). What is no entity tag is dropped, as
/// nginx does it.
pub(crate) fn weaken(etag: &mut Vec<u8>) {
    match etag.first() {
        Some(b'"') => {
            etag.splice(..0, *b"W/");
        }
        _ if etag.starts_with(b"W/") => {}
        _ => etag.clear(),
    }
}

/// Whether a response's body is coded (`Content-Encoding`), so that there is no text in it.
pub(crate) fn is_coded(response: &Response) -> bool {
    let mut codings = response.fields().values(b"Content-Encoding");
    codings.any(|coding| !coding.is_empty())
}

#[cfg(test)]
mod tests {
    use super::weaken;

    #[test]
    fn entity_tags_become_weak_ones() {
        for (etag, expected) in [
            ("\"a\"", "W/\"a\""),
            ("W/\"a\"", "W/\"a\""),
            ("a", ""),
            ("", ""),
        ] {
            let mut text = etag.as_bytes().to_vec();
            weaken(&mut text);
            assert_eq!(text, expected.as_bytes(), "{etag}");
        }
    }
}
