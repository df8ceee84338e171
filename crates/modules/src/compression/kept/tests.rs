//! Forms and their sources.

use super::*;

fn bytes(text: &[u8]) -> Arc<[u8]> {
    text.into()
}

fn keep(kept: &Kept, source: &Arc<[u8]>, form: &[u8]) {
    let recording = Recording::new(Source::Bytes(Arc::clone(source)));
    if let Some(recording) = recording.add(form) {
        recording.end(kept);
    }
}

fn form(kept: &Kept, source: &Arc<[u8]>) -> Option<Vec<u8>> {
    let form = kept.form_of(&Source::Bytes(Arc::clone(source)));
    form.map(|bytes| bytes.to_vec())
}

#[test]
fn a_form_stays_as_long_as_its_source() {
    let kept = Kept::new();
    let (one, other) = (bytes(b"same"), bytes(b"same"));
    keep(&kept, &one, b"short");
    assert_eq!(form(&kept, &one).as_deref(), Some(&b"short"[..]));
    assert_eq!(form(&kept, &other), None, "another source with equal bytes");
    kept.tick(0);
    assert_eq!(form(&kept, &one).as_deref(), Some(&b"short"[..]));
    drop(one);
    kept.tick(0);
    assert_eq!(kept.0.borrow().len(), 0);
}

#[test]
fn forms_are_bounded_each_and_together() {
    let kept = Kept::new();
    let large = bytes(b"large");
    keep(&kept, &large, &vec![0; FORM_BYTES_MAX + 1]);
    assert_eq!(form(&kept, &large), None);
    let count = 2 * TOTAL_BYTES_MAX as usize / FORM_BYTES_MAX;
    let sources: Vec<_> = (0..count).map(|_| bytes(b"x")).collect();
    for source in &sources {
        keep(&kept, source, &vec![0; FORM_BYTES_MAX]);
    }
    let held_bytes = kept.0.borrow().weight();
    assert!((1..=TOTAL_BYTES_MAX).contains(&held_bytes), "{held_bytes}");
}
