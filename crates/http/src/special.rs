//! Answers that no handler made: errors, redirects without a page, and what `error_page` puts in
//! their place.

use turnpike_wire::message::{Known, Method, Version};
use turnpike_wire::target::{Escape, escape};

use crate::engine::Outcome;
use crate::exchange::Exchange;
use crate::settings::{ErrorPage, ErrorTarget, PageStatus};

/// Statuses that close the connection without an answer, as in nginx: 444 is its own for that, and
/// 499 says that there is no client to answer.
const WITHOUT_ANSWER: [u16; 2] = [444, 499];

/// Comment that makes a short page longer than what old MSIE (and Chrome) put in its place.
const PADDING: &str = "<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n";
const PADDING_LINES: usize = 6;

/// Begins a page in our own style: readable on a phone, light or dark as the reader has it. It
/// needs nothing from elsewhere, and is plain text where a policy forbids its style.
const OWN_BEGIN: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
<meta name=\"color-scheme\" content=\"light dark\">\n<title>";

/// Between the title of such a page and its heading.
const OWN_STYLE: &str = "</title>\n<style>\n\
body { min-height: 90vh; margin: 0; padding: 1rem; display: grid; place-content: center; \
text-align: center; font: 1rem/1.5 system-ui, sans-serif; color: #1b2330; background: #f7f8fa }\n\
h1 { margin: 0; font-size: clamp(1.5rem, 5vw, 2.25rem); font-weight: 600; text-wrap: balance }\n\
p { margin: .5rem 0 0; color: #566173 }\n\
@media (prefers-color-scheme: dark) { body { color: #e8ebf0; background: #14181f } \
p { color: #9ba6b5 } }\n\
</style>\n</head>\n<body><main>\n<h1>";

impl Exchange {
    /// Answers with a status: the page that `error_page` names, or the server's own.
    pub(crate) fn finalize(&mut self, status: u16) -> Option<Outcome> {
        if WITHOUT_ANSWER.contains(&status) {
            // For the log.
            self.walk.set_error_status(status);
            return Some(Outcome::Close);
        }
        self.debug(format_args!("ending with status {status}"));
        self.walk.set_error_status(status);
        if matches!(status, 400 | 413 | 414 | 495..=497 | 500 | 501) {
            self.sending.close_connection();
        }
        self.response.content_type_mut().clear();
        let plan = self.plan.clone();
        let settings = &plan.location(self.walk.location()).settings;
        if self.walk.error_pages_apply() && !settings.error_pages.is_empty() {
            self.walk
                .look_at_error_pages(settings.recursive_error_pages);
            let page = settings
                .error_pages
                .iter()
                .find(|page| page.statuses.contains(&status));
            if let Some(page) = page {
                return self.error_page(page);
            }
        }
        self.own_page(status)
    }

    fn error_page(&mut self, page: &ErrorPage) -> Option<Outcome> {
        match page.answer {
            PageStatus::Error => {}
            PageStatus::Page => self.walk.set_error_status(0),
            PageStatus::Status(status) => self.walk.set_error_status(status),
        }
        let template = match &page.target {
            ErrorTarget::Named(name) => return self.go_to_named(name),
            ErrorTarget::Path(template) => template,
        };
        let target = template.value(self);
        if target.first() == Some(&b'/') {
            let cut = memchr::memchr(b'?', &target);
            let path = target
                .get(..cut.unwrap_or(target.len()))
                .unwrap_or_default();
            let query = cut
                .and_then(|cut| target.get(cut + 1..))
                .unwrap_or_default();
            self.walk.redirect_to(path, query);
            if self.method() != Method::Head {
                self.walk.ask_with(Method::Get);
            }
            return self.internal_redirect();
        }
        if target.first() == Some(&b'@') {
            return self.go_to_named(&String::from_utf8_lossy(&target));
        }
        let status = match page.answer {
            PageStatus::Status(status @ (301 | 302 | 303 | 307 | 308)) => status,
            _ => 302,
        };
        self.walk.set_error_status(status);
        self.response.set_location(target);
        self.own_page(status)
    }

    /// The server's own page, if the status has one; else a head without a body.
    fn own_page(&mut self, status: u16) -> Option<Outcome> {
        let location = self.response.take_location();
        self.response.clear_body();
        self.response.set_location(location);
        if matches!(status, 494..=497) {
            self.walk.set_error_status(400);
        }
        if matches!(status, 301 | 302) && self.wants_refresh() {
            return self.refresh_page();
        }
        self.response.set_status(self.walk.error_status());
        let mut text = self.response.take_text();
        text.clear();
        if let Some((title, heading)) = page_text(status) {
            if self.location().settings.has_own_pages {
                self.write_own_page(title, heading, &mut text);
                self.response.set_content_type(b"text/html; charset=utf-8");
            } else {
                self.write_page(title, heading, status, &mut text);
                self.response.set_content_type(b"text/html");
            }
        }
        self.response.set_text(text);
        self.response.send_text();
        self.respond()
    }

    fn write_own_page(&self, title: &str, heading: Option<&str>, out: &mut Vec<u8>) {
        let product = self.location().settings.product;
        let heading_shown = heading.unwrap_or(title);
        for part in [OWN_BEGIN, title, OWN_STYLE, heading_shown, "</h1>\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        if heading.is_some() {
            let reason = title.trim_start_matches("400 ");
            for part in ["<p>", reason, "</p>\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        for part in ["<p>", product, "</p>\n</main></body>\n</html>\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// nginx's page.
    fn write_page(&self, title: &str, heading: Option<&str>, status: u16, out: &mut Vec<u8>) {
        let settings = &self.location().settings;
        out.extend_from_slice(b"<html>\r\n<head><title>");
        out.extend_from_slice(title.as_bytes());
        out.extend_from_slice(b"</title></head>\r\n<body>\r\n<center><h1>");
        out.extend_from_slice(heading.unwrap_or(title).as_bytes());
        out.extend_from_slice(b"</h1></center>\r\n");
        if heading.is_some() {
            out.extend_from_slice(b"<center>");
            out.extend_from_slice(title.trim_start_matches("400 ").as_bytes());
            out.extend_from_slice(b"</center>\r\n");
        }
        out.extend_from_slice(b"<hr><center>");
        out.extend_from_slice(settings.product.as_bytes());
        out.extend_from_slice(b"</center>\r\n</body>\r\n</html>\r\n");
        let padded = settings.msie_padding && status >= 400 && self.is_padded_browser();
        if padded && self.request().head().version != Version::Http09 {
            for _ in 0..PADDING_LINES {
                out.extend_from_slice(PADDING.as_bytes());
            }
        }
    }

    fn is_padded_browser(&self) -> bool {
        self.agent_has(b"MSIE ") || self.agent_has(b"Chrome/")
    }

    fn wants_refresh(&self) -> bool {
        self.location().settings.msie_refresh && self.agent_has(b"MSIE ")
    }

    /// Whether the User-Agent field holds `text` (and is not Opera's disguise).
    pub(crate) fn agent_has(&self, text: &[u8]) -> bool {
        let Some(agent) = self.known_field(Known::UserAgent) else {
            return false;
        };
        memchr::memmem::find(agent, text).is_some()
            && memchr::memmem::find(agent, b"Opera").is_none()
    }

    /// A page that leads MSIE on, since it loses fragments at a redirect.
    fn refresh_page(&mut self) -> Option<Outcome> {
        let location = self.response.take_location();
        let mut text = self.response.take_text();
        text.clear();
        text.extend_from_slice(b"<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=");
        escape(&location, Escape::Refresh, &mut text);
        text.extend_from_slice(b"\"></head><body></body></html>\r\n");
        self.response.set_text(text);
        self.response.send_text();
        self.response.set_content_type(b"text/html");
        self.walk.set_error_status(200);
        self.response.set_status(200);
        self.respond()
    }
}

/// Title of the server's own page, and the heading where it differs. nginx's words.
fn page_text(status: u16) -> Option<(&'static str, Option<&'static str>)> {
    let text = match status {
        301 => "301 Moved Permanently",
        302 => "302 Found",
        303 => "303 See Other",
        307 => "307 Temporary Redirect",
        308 => "308 Permanent Redirect",
        400 => "400 Bad Request",
        401 => "401 Authorization Required",
        402 => "402 Payment Required",
        403 => "403 Forbidden",
        404 | 498 => "404 Not Found",
        405 => "405 Not Allowed",
        406 => "406 Not Acceptable",
        407 => "407 Proxy Authentication Required",
        408 => "408 Request Time-out",
        409 => "409 Conflict",
        410 => "410 Gone",
        411 => "411 Length Required",
        412 => "412 Precondition Failed",
        413 => "413 Request Entity Too Large",
        414 => "414 Request-URI Too Large",
        415 => "415 Unsupported Media Type",
        416 => "416 Requested Range Not Satisfiable",
        421 => "421 Misdirected Request",
        429 => "429 Too Many Requests",
        500 => "500 Internal Server Error",
        501 => "501 Not Implemented",
        502 => "502 Bad Gateway",
        503 => "503 Service Temporarily Unavailable",
        504 => "504 Gateway Time-out",
        505 => "505 HTTP Version Not Supported",
        507 => "507 Insufficient Storage",
        494..=497 => return Some((bad_request_title(status), Some("400 Bad Request"))),
        _ => return None,
    };
    Some((text, None))
}

fn bad_request_title(status: u16) -> &'static str {
    match status {
        495 => "400 The SSL certificate error",
        496 => "400 No required SSL certificate was sent",
        497 => "400 The plain HTTP request was sent to HTTPS port",
        _ => "400 Request Header Or Cookie Too Large",
    }
}
