//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_plan::temporary::Removal;
use turnpike_wire::message::Method;

use super::handler::{Files, Settings};
use super::rows::ROWS;
use crate::{file_access, files};

/// The family of `dav_methods`.
pub(crate) struct Dav;

impl Family for Dav {
    fn name(&self) -> &'static str {
        "dav"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        let Some(entry) = view.nearest("dav_methods") else {
            return Ok(());
        };
        let words = entry.arguments.iter();
        let words = words.map(|word| word.text.to_ascii_uppercase());
        let methods: Vec<Method> = words
            .map(|word| Method::of(word.as_bytes()))
            .filter(|method| *method != Method::Other)
            .collect();
        if methods.is_empty() {
            return Ok(());
        }
        let folder = files::folder_of(view);
        let declared = builder.environment.files(entry.row.name, &folder);
        declared.map_err(|message| view.error(entry.span, message))?;
        if methods.contains(&Method::Put) {
            // The file is the body's then.
            draft
                .settings
                .client_body_in_file
                .get_or_insert(Removal::AtEnd);
        }
        let settings = Settings {
            methods,
            makes_folders: view.flag("create_full_put_path"),
            mode: file_access::read(view, view.nearest("dav_access"))?,
            delete_depth_min: usize::try_from(view.number("min_delete_depth")).unwrap_or(0),
        };
        draft.add_handler(HandlerPlace::Answer, Arc::new(Files(Arc::new(settings))));
        Ok(())
    }
}
