//! What the directives of this family mean for a location.

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::origin::{SCHEME, ScgiOrigin};
use super::rows::ROWS;
use crate::buffers::BufferSizes;
use crate::pass::params::Params;
use crate::pass::plan::{FamilyParts, destination_without_path, pass_in_force, pass_on};
use crate::pass::target::PassUrl;
use crate::pass::view::PassView;

/// What the names of the directives begin with.
const PREFIX: &str = "scgi";

/// The family of `scgi_pass`.
pub(crate) struct Scgi;

impl Family for Scgi {
    fn name(&self) -> &'static str {
        PREFIX
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
        let pass = PassView::new(view, PREFIX);
        pass.declare_temporary_folder(builder.environment);
        let Some((level, entry)) = pass_in_force(pass) else {
            return BufferSizes::check(view, PREFIX);
        };
        let parse = |text: &str| PassUrl::parse_address(SCHEME, text);
        let destination = destination_without_path(level, entry, builder, parse)?;
        let origin = ScgiOrigin {
            params: Params::read(pass, builder)?,
        };
        let parts = FamilyParts::of_application(pass, destination, origin);
        pass_on(pass, builder, draft, parts)?;
        Ok(())
    }
}
