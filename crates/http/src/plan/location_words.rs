//! What the words behind `location` say.

use turnpike_conf::{Complaint, Word};

/// What a location's words say it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Exact,
    Prefix,
    FinalPrefix,
    Pattern,
    PatternCaseless,
    /// The name is that of a variable, with its dollar sign.
    Predicate,
    Named,
}

impl Kind {
    /// Whether its name is no part of the paths that it is found for.
    pub(crate) fn is_apart_from_paths(self) -> bool {
        matches!(
            self,
            Self::Pattern | Self::PatternCaseless | Self::Predicate
        )
    }
}

/// Reads the words after `location`: a modifier of its own or at the front of the name.
pub(crate) fn location_words(words: &[Word]) -> Result<(Kind, &str), Complaint> {
    match words {
        [modifier, name] => {
            let kind = match modifier.text.as_str() {
                "=" => Kind::Exact,
                "^~" => Kind::FinalPrefix,
                "~" => Kind::Pattern,
                "~*" => Kind::PatternCaseless,
                other => return Err(format!("invalid location modifier \"{other}\"").into()),
            };
            Ok((kind, &name.text))
        }
        [name] => {
            let text = name.text.as_str();
            let glued = [
                ("=", Kind::Exact),
                ("^~", Kind::FinalPrefix),
                ("~*", Kind::PatternCaseless),
                ("~", Kind::Pattern),
            ];
            for (modifier, kind) in glued {
                if let Some(rest) = text.strip_prefix(modifier) {
                    return Ok((kind, rest));
                }
            }
            let kind = match text.as_bytes().first() {
                Some(b'@') => Kind::Named,
                Some(b'$') => Kind::Predicate,
                _ => Kind::Prefix,
            };
            Ok((kind, text))
        }
        _ => Err("invalid number of arguments in \"location\" directive".into()),
    }
}
