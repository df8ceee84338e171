//! Changing the fields.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Filter, Handler, Verdict};
use turnpike_http::response::{OmittedFields, Response};
use turnpike_wire::date;

use super::plan::{Change, Changes, Scope};

impl Scope {
    /// Whether a message is meant, by its status (0: it has none) and its content type.
    pub(super) fn has(&self, status: u16, content_type: &[u8]) -> bool {
        let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
        let kind = content_type[..end].trim_ascii();
        let is_type = |own: &[u8]| own.eq_ignore_ascii_case(kind);
        (self.statuses.is_empty() || self.statuses.contains(&status))
            && (self.types.is_empty() || self.types.iter().any(|own| is_type(own)))
    }
}

impl Change {
    /// Whether it is about a field of this name.
    pub(super) fn is_of(&self, name: &[u8]) -> bool {
        if self.is_prefix {
            name.get(..self.name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(&self.name))
        } else {
            name.eq_ignore_ascii_case(&self.name)
        }
    }
}

/// Changes fields of responses.
pub(super) struct ResponseFields(pub(super) Vec<Changes>);

impl Filter for ResponseFields {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        exchange.response.show_withheld(true);
        let mut value = exchange.lane.take_scratch();
        for changes in &self.0 {
            let response = &exchange.response;
            if !changes
                .scope
                .has(response.status(), response.shown_content_type())
            {
                continue;
            }
            for change in &changes.fields {
                value.clear();
                change.value.evaluate(exchange, &mut value);
                put(&mut exchange.response, change, changes.scope.adds, &value);
            }
        }
        exchange.lane.keep_scratch(value);
        exchange.response.show_withheld(false);
        None
    }
}

fn put(response: &mut Response, change: &Change, adds: bool, value: &[u8]) {
    if adds {
        if !value.is_empty() {
            response.fields_mut().add(&change.name, value);
        }
        return;
    }
    response
        .fields_mut()
        .retain(|field| !change.is_of(field.name));
    let is_apart = clear_apart(response, change);
    if value.is_empty() || change.is_prefix {
        return;
    }
    match is_apart {
        Some(Apart::ContentType) => response.set_content_type(value),
        Some(Apart::EntityTag) => response.etag_mut().extend_from_slice(value),
        Some(Apart::Location) => response.location_mut().extend_from_slice(value),
        Some(Apart::LastModified) => {
            let seconds = date::parse(value);
            let usual = seconds.filter(|seconds| date::format(*seconds).as_slice() == value);
            response.set_last_modified(usual);
            // What is no date in the usual form is sent as it is written.
            if usual.is_none() {
                response.fields_mut().add(&change.name, value);
            }
        }
        Some(Apart::Server | Apart::Date) | None => response.fields_mut().add(&change.name, value),
    }
}

/// A field that a response has in a place of its own.
#[derive(Clone, Copy)]
enum Apart {
    ContentType,
    Date,
    EntityTag,
    LastModified,
    Location,
    Server,
}

const APART: &[(&[u8], Apart)] = &[
    (b"Content-Type", Apart::ContentType),
    (b"Date", Apart::Date),
    (b"ETag", Apart::EntityTag),
    (b"Last-Modified", Apart::LastModified),
    (b"Location", Apart::Location),
    (b"Server", Apart::Server),
];

/// Takes away what of the change's name stands in places of its own; returns the last such place.
fn clear_apart(response: &mut Response, change: &Change) -> Option<Apart> {
    let concerned = APART.iter().filter(|(name, _)| change.is_of(name));
    let mut last = None;
    for (_, apart) in concerned {
        match apart {
            Apart::ContentType => response.content_type_mut().clear(),
            Apart::Date => response.set_omitted_fields(OmittedFields {
                date: true,
                ..response.omitted_fields()
            }),
            Apart::EntityTag => response.etag_mut().clear(),
            Apart::LastModified => response.set_last_modified(None),
            Apart::Location => response.location_mut().clear(),
            Apart::Server => response.set_omitted_fields(OmittedFields {
                server: true,
                ..response.omitted_fields()
            }),
        }
        last = Some(*apart);
    }
    last
}

/// Changes fields of requests.
pub(super) struct RequestFields(pub(super) Vec<Changes>);

impl Handler for RequestFields {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let mut value = exchange.lane.take_scratch();
        for changes in &self.0 {
            let kind = exchange.field(b"Content-Type");
            if !changes.scope.has(0, kind.unwrap_or_default()) {
                continue;
            }
            for change in &changes.fields {
                value.clear();
                change.value.evaluate(exchange, &mut value);
                change_request(exchange, change, changes.scope.replaces, &value);
            }
        }
        exchange.lane.keep_scratch(value);
        Verdict::Declined
    }
}

fn change_request(exchange: &mut Exchange, change: &Change, replaces: bool, value: &[u8]) {
    let fields = exchange.fields();
    let is_there = fields.iter().any(|(name, _)| change.is_of(name));
    let adds = !value.is_empty() && !change.is_prefix && (is_there || !replaces);
    if !is_there && !adds {
        return;
    }
    exchange.change_fields(|fields| {
        fields.retain(|field| !change.is_of(field.name));
        if adds {
            fields.add(&change.name, value);
        }
    });
}
