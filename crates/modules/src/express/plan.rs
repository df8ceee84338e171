//! What the directives of this family mean.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_express::{Mode, OBJECTS_MAX, Publisher, Wish};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_plan::metrics;

use super::eligible::Reasons;
use super::handler::{Publishes, Recent};
use super::metrics::{METRICS, Reader};
use super::rows::ROWS;
use crate::limits::parse_rate;

/// The family of `express`.
pub(crate) struct Express;

/// What the locations of a plan publish to.
#[derive(Default)]
struct Shared(Option<(Arc<Publisher>, Arc<Reasons>)>);

impl Family for Express {
    fn name(&self) -> &'static str {
        "express"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn metrics(&self) -> &'static [metrics::Row] {
        METRICS
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        if !is_wanted(view) {
            return Ok(());
        }
        let wish = wish(view)?;
        let Some(publisher) = builder.environment.express(&wish) else {
            return Ok(());
        };
        let reasons = Arc::new(Reasons::default());
        let reader = Reader {
            publisher: publisher.clone(),
            reasons: reasons.clone(),
        };
        builder.metrics(Arc::new(reader));
        builder.store::<Shared>().0 = Some((publisher, reasons));
        Ok(())
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        let rate = match view.nearest("express_min_rate") {
            None => parse_rate("10r/s"),
            Some(entry) => {
                let rate = parse_rate(entry.argument(0));
                Some(rate.ok_or_else(|| {
                    view.error(
                        entry.span,
                        format!("invalid rate \"{}\"", entry.argument(0)),
                    )
                })?)
            }
        };
        let recent = match view.choice("express") {
            "off" => return Ok(()),
            "auto" => Some(Recent::new(rate.unwrap_or_default())),
            _ => None,
        };
        if let Some((publisher, reasons)) = builder.store::<Shared>().0.clone() {
            draft.add_logger(Arc::new(Publishes {
                publisher,
                reasons,
                recent,
                closes_kept: view.flag("express_close"),
            }));
        }
        Ok(())
    }
}

/// Whether the express lane is on in this block or one inside it.
fn is_wanted(view: View<'_>) -> bool {
    let is_on = view
        .own("express")
        .is_some_and(|entry| entry.argument(0) != "off");
    is_on
        || view.children("server").any(is_wanted)
        || view.children("location").any(is_wanted)
        || view.children("if").any(is_wanted)
}

fn wish(view: View<'_>) -> Result<Wish, ConfError> {
    let Some(interfaces) = view.own("express_interface") else {
        let message = "\"express\" needs \"express_interface\" with the network interfaces whose \
            requests it answers";
        return Err(view.error(view.span(), message));
    };
    let objects = view.number("express_objects");
    let entry = view.own("express_objects");
    let in_range = usize::try_from(objects).ok();
    let Some(objects) = in_range.filter(|count| (1..=OBJECTS_MAX).contains(count)) else {
        let span = entry.map_or(view.span(), |entry| entry.span);
        let message = format!("\"express_objects\" must be between 1 and {OBJECTS_MAX}");
        return Err(view.error(span, message));
    };
    let names = interfaces.arguments.iter().map(|word| word.text.clone());
    Ok(Wish {
        interfaces: names.collect(),
        mode: match view.choice("express_mode") {
            "native" => Mode::Native,
            "generic" => Mode::Generic,
            _ => Mode::Auto,
        },
        objects,
    })
}
