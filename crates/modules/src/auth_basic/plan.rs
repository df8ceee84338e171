//! Reads the two directives.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::AuthHandler;
use crate::common::files;

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
        folder: folder_bytes(builder.environment.conf_folder()),
        contents: files::contents(builder),
    };
    draft.add_handler(HandlerPlace::PasswordAccess, Arc::new(handler));
    Ok(())
}

/// The folder with a slash at its end.
fn folder_bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = folder.as_os_str().as_bytes().to_vec();
    if !bytes.is_empty() && !bytes.ends_with(b"/") {
        bytes.push(b'/');
    }
    bytes
}
