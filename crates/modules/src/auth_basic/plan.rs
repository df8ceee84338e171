//! Reads the two directives.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::AuthHandler;

/// Adds the check to a location that has both a realm and a file.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let (Some(realm), Some(file)) = (
        view.nearest("auth_basic"),
        view.nearest("auth_basic_user_file"),
    ) else {
        return Ok(());
    };
    let (Some(realm_word), Some(file_word)) = (realm.arguments.first(), file.arguments.first())
    else {
        return Ok(());
    };
    if realm_word.text == "off" {
        return Ok(());
    }
    let handler = AuthHandler {
        realm: builder.template(view, realm, &realm_word.bytes())?,
        file: builder.template(view, file, &file_word.bytes())?,
        folder: builder.environment.conf_folder().to_path_buf(),
    };
    draft.add_handler(HandlerPlace::PasswordAccess, Arc::new(handler));
    Ok(())
}
