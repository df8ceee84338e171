//! A directive in a block where it has no meaning: the blocks where it belongs.

use turnpike_conf::Context;

use super::mistake::{Found, Mistake};

pub(super) fn hint(mistake: &Mistake<'_>) -> Option<String> {
    let name = mistake
        .message
        .strip_prefix('"')?
        .strip_suffix("\" directive is not allowed here")?;
    let found = mistake.named(name)?;
    let rows = mistake.registry.rows().filter(|(_, row)| row.name == name);
    let contexts: Vec<Context> = rows.flat_map(|(_, row)| row.contexts).copied().collect();
    let is_near = |context: &&Context| is_of_stream(**context) == found.is_in_stream();
    let mut near: Vec<Context> = contexts.iter().filter(is_near).copied().collect();
    if near.is_empty() {
        near = contexts;
    }
    Some(format!("; it belongs in {}", listed(found, &near)?))
}

fn is_of_stream(context: Context) -> bool {
    matches!(
        context,
        Context::Stream | Context::StreamServer | Context::StreamUpstream
    )
}

/// The blocks as text, those of `mail` left out where there are others.
fn listed(found: &Found<'_>, contexts: &[Context]) -> Option<String> {
    let mut texts: Vec<&str> = Vec::new();
    for context in contexts {
        let is_narrow = matches!(
            context,
            Context::IfInServer | Context::IfInLocation | Context::LimitExcept
        );
        let is_mail = matches!(context, Context::Mail | Context::MailServer);
        let text = block(*context);
        if (is_narrow || is_mail) && contexts.len() > 1 || texts.contains(&text) {
            continue;
        }
        texts.push(text);
    }
    // Where a server block is meant, the one around it is what is missing.
    if found.name() == "server" && texts.first() == Some(&"http { }") {
        texts.truncate(1);
    }
    let (last, others) = texts.split_last()?;
    Some(if others.is_empty() {
        (*last).to_owned()
    } else {
        format!("{} or {last}", others.join(", "))
    })
}

fn block(context: Context) -> &'static str {
    match context {
        Context::Main => "the main context, outside of all blocks",
        Context::Events => "events { }",
        Context::Http => "http { }",
        Context::Server => "server { }",
        Context::Location => "location { }",
        Context::IfInServer | Context::IfInLocation => "if { }",
        Context::LimitExcept => "limit_except { }",
        Context::Upstream => "upstream { }",
        Context::Stream => "stream { }",
        Context::StreamServer => "server { } of stream { }",
        Context::StreamUpstream => "upstream { } of stream { }",
        Context::Mail => "mail { }",
        Context::MailServer => "server { } of mail { }",
        Context::Entries => "a block of data",
    }
}
