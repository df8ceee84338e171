//! Fields of responses that are not meant for us.

use super::view::PassView;

/// `..._ignore_headers`, as far as it is the engine's: a cache has its own look at the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ignored {
    pub(crate) redirect: bool,
    pub(crate) limit_rate: bool,
    pub(crate) buffering: bool,
    pub(crate) charset: bool,
}

impl Ignored {
    pub(crate) fn read(pass: PassView<'_>) -> Self {
        let entries = pass.nearest_all("ignore_headers");
        let has = |name: &str| {
            let mut words = entries.iter().flat_map(|entry| entry.arguments.iter());
            words.any(|word| word.text.eq_ignore_ascii_case(name))
        };
        Self {
            redirect: has("X-Accel-Redirect"),
            limit_rate: has("X-Accel-Limit-Rate"),
            buffering: has("X-Accel-Buffering"),
            charset: has("X-Accel-Charset"),
        }
    }
}
