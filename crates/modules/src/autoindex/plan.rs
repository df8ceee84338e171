//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_plan::product::Product;

use super::handler::{Format, Frame, Listing};

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let is_fancy = view.flag("fancyindex");
    if !is_fancy && !view.flag("autoindex") {
        return Ok(());
    }
    let charset = view.nearest("charset").map(|entry| entry.argument(0));
    let own_style = builder.environment.product() == Product::Turnpike;
    let names_charset = own_style && charset.is_none();
    let listing = Listing {
        format: match view.choice("autoindex_format") {
            _ if is_fancy => Format::Html,
            "json" => Format::Json,
            "jsonp" => Format::Jsonp,
            "xml" => Format::Xml,
            _ => Format::Html,
        },
        local_time: view.flag(if is_fancy {
            "fancyindex_localtime"
        } else {
            "autoindex_localtime"
        }),
        exact_size: view.flag(if is_fancy {
            "fancyindex_exact_size"
        } else {
            "autoindex_exact_size"
        }),
        frame: if is_fancy {
            frame(view)
        } else {
            Frame::default()
        },
        utf8: names_charset || charset.is_some_and(|charset| charset.eq_ignore_ascii_case("utf-8")),
        own_style,
        names_charset,
    };
    draft.add_handler(HandlerPlace::Listing, Arc::new(listing));
    Ok(())
}

fn frame(view: View<'_>) -> Frame {
    let given = |name: &str| {
        let entry = view.nearest(name)?;
        Some(entry.argument(0)).filter(|text| !text.is_empty())
    };
    let path = |name: &str| given(name).map(|path| path.as_bytes().into());
    Frame {
        header: path("fancyindex_header"),
        footer: path("fancyindex_footer"),
        style: given("fancyindex_css_href").map(|text| text.as_bytes().to_vec()),
    }
}

/// `path [subrequest]`.
pub(super) fn check_frame(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        [_] | [_, "subrequest"] => Ok(()),
        [_, word] => Err(format!("invalid parameter \"{word}\": use \"subrequest\"").into()),
        _ => Err("invalid parameters".into()),
    }
}
