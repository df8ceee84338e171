//! What the words behind `location` say.

use turnpike_conf::Word;

/// What a location's words say it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Exact,
    Prefix,
    FinalPrefix,
    Pattern,
    PatternCaseless,
    Named,
}

impl Kind {
    /// Whether it is a regular expression.
    pub(crate) fn is_pattern(self) -> bool {
        matches!(self, Self::Pattern | Self::PatternCaseless)
    }
}

/// Reads the words after `location`: a modifier of its own or at the front of the name.
pub(crate) fn location_words(words: &[Word]) -> Result<(Kind, &str), String> {
    match words {
        [modifier, name] => {
            let kind = match modifier.text.as_str() {
                "=" => Kind::Exact,
                "^~" => Kind::FinalPrefix,
                "~" => Kind::Pattern,
                "~*" => Kind::PatternCaseless,
                other => return Err(format!("invalid location modifier \"{other}\"")),
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
            // A word that nginx gave a meaning later may not be read as another thing silently: an
            // access rule that stands there would hold for nothing.
            if text.starts_with('$') {
                return Err(format!(
                    "the \"{text}\" parameter of \"location\" is not supported yet"
                ));
            }
            Ok((
                if text.starts_with('@') {
                    Kind::Named
                } else {
                    Kind::Prefix
                },
                text,
            ))
        }
        _ => Err("invalid number of arguments in \"location\" directive".to_owned()),
    }
}
