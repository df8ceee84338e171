//! What the directives of this family mean.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use turnpike_conf::{Complaint, ConfError, Directive, View, bytes_of, value};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_lane::trust::Trust;

use super::exporter::{Exporter, ExporterSettings};
use super::handler::{Begin, End, Settings};
use super::sender::Endpoint;

/// The ports of OTLP over gRPC and over HTTP.
const GRPC_PORT: u16 = 4317;
const HTTP_PORT: u16 = 4318;

/// The most spans of a batch, and the most batches that wait: together some hundred megabytes.
const BATCH_SIZE_MAX: usize = 10_000;
const BATCH_COUNT_MAX: usize = 100;

/// Where Debian and its like have the certificates that everybody trusts.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The exporter of the configuration.
#[derive(Default)]
struct Store(Option<Arc<Exporter>>);

/// Reads what stands at the http level.
pub(super) fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let Some(block) = view.children("otel_exporter").next() else {
        return Ok(());
    };
    let mut read = Written::default();
    for line in block.data() {
        if let Err(message) = read.line(line) {
            builder.report(block.error(line.span, message));
        }
    }
    let fail = |message: Complaint| block.error(block.span(), message);
    let endpoint = read.endpoint.as_deref().filter(|text| !text.is_empty());
    let endpoint =
        endpoint.ok_or_else(|| fail("\"otel_exporter\" requires \"endpoint\"".into()))?;
    let mut endpoint = parse_endpoint(endpoint).map_err(fail)?;
    if endpoint.tls.is_some() {
        endpoint.tls = Some(tls(read.trusted.as_deref(), builder).map_err(fail)?);
    }
    let log = builder
        .environment
        .error_log(&view.nearest_all("error_log"));
    let exporter = Exporter::shared(
        ExporterSettings {
            endpoint,
            headers: read.headers,
            resource: resource(view),
            interval_ms: read.interval_ms.unwrap_or(5000),
            batch_size: read.batch_size.unwrap_or(512),
            batch_count: read.batch_count.unwrap_or(4),
        },
        log.map_err(|error| fail(String::from(error).into()))?,
    );
    builder.service(exporter.clone());
    builder.store::<Store>().0 = Some(exporter);
    Ok(())
}

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let exporter = builder.store::<Store>().0.clone();
    let trace = view.nearest("otel_trace");
    let handling = view.try_choice("otel_trace_context").unwrap_or("ignore");
    if let Some(entry) = trace
        && exporter.is_none()
        && !has_exporter(view)
    {
        let message = "\"otel_exporter\" block is missing";
        return Err(view.error(entry.span, message));
    }
    if exporter.is_none() && trace.is_none() && handling == "ignore" {
        return Ok(());
    }
    let mut template = |entry: &turnpike_conf::Entry, index: usize| {
        builder.template(view, entry, &bytes_of(entry.argument(index)))
    };
    let trace = trace.map(|entry| template(entry, 0)).transpose()?;
    let span_name = view.nearest("otel_span_name");
    let span_name = span_name.map(|entry| template(entry, 0)).transpose()?;
    let attributes = view.nearest_all("otel_span_attr").into_iter();
    let attributes = attributes
        .map(|entry| Ok((entry.argument(0).to_owned(), template(entry, 1)?)))
        .collect::<Result<Vec<_>, ConfError>>()?;
    let settings = Arc::new(Settings {
        trace,
        extracts: matches!(handling, "extract" | "propagate"),
        injects: matches!(handling, "inject" | "propagate"),
        span_name,
        attributes,
        exporter,
    });
    draft.add_handler(
        HandlerPlace::Rewrite,
        Arc::new(Begin(Arc::clone(&settings))),
    );
    draft.add_logger(Arc::new(End(settings)));
    Ok(())
}

/// Whether the file has the block, even where something in it is wrong.
fn has_exporter(view: View<'_>) -> bool {
    let http = view.enclosing(turnpike_conf::Context::Http);
    http.is_some_and(|http| http.own("otel_exporter").is_some())
}

/// The lines of `otel_exporter`.
#[derive(Default)]
struct Written {
    endpoint: Option<String>,
    trusted: Option<String>,
    headers: Vec<(String, String)>,
    interval_ms: Option<u64>,
    batch_size: Option<usize>,
    batch_count: Option<usize>,
}

impl Written {
    fn line(&mut self, line: &Directive) -> Result<(), Complaint> {
        let name = line.name.text.as_str();
        let words: Vec<&str> = line.arguments.iter().map(|word| &*word.text).collect();
        let expected = match name {
            "endpoint" | "trusted_certificate" | "interval" | "batch_size" | "batch_count" => 1,
            "header" => 2,
            _ => return Err(format!("unknown directive \"{name}\" in \"otel_exporter\"").into()),
        };
        if words.len() != expected {
            return Err(format!(
                "invalid number of arguments in \"{name}\" directive of \"otel_exporter\""
            )
            .into());
        }
        let said = |what: &str| format!("\"{name}\" directive of \"otel_exporter\" {what}");
        let text = words[0];
        let is_new = match name {
            "endpoint" => self.endpoint.replace(text.to_owned()).is_none(),
            "trusted_certificate" => self.trusted.replace(text.to_owned()).is_none(),
            "interval" => {
                let interval = value::milliseconds(text).filter(|time_ms| *time_ms > 0);
                let interval = interval.ok_or_else(|| said("invalid value"))?;
                self.interval_ms.replace(interval).is_none()
            }
            "batch_size" => {
                let size = count(text, BATCH_SIZE_MAX).map_err(|words| said(&words.to_string()))?;
                self.batch_size.replace(size).is_none()
            }
            "batch_count" => {
                let count =
                    count(text, BATCH_COUNT_MAX).map_err(|words| said(&words.to_string()))?;
                self.batch_count.replace(count).is_none()
            }
            _ => {
                self.headers.push(header(text, words[1]).map_err(said)?);
                true
            }
        };
        if is_new {
            Ok(())
        } else {
            Err(said("is duplicate").into())
        }
    }
}

/// A number from 1.
fn count(text: &str, most: usize) -> Result<usize, Complaint> {
    let number = text.parse().ok().filter(|number| *number >= 1);
    let number = number.ok_or_else(|| "invalid value".to_owned())?;
    if number > most {
        Err(format!("invalid value: at most {most}").into())
    } else {
        Ok(number)
    }
}

/// A field that the collector gets, with its name in lower case, as HTTP/2 has it.
fn header(name: &str, value: &str) -> Result<(String, String), &'static str> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err("has invalid header name");
    }
    if !value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Err("has invalid header value");
    }
    Ok((name.to_ascii_lowercase(), value.to_owned()))
}

/// The parts of an endpoint; TLS without its certificates where it is asked for.
pub(super) fn parse_endpoint(text: &str) -> Result<Endpoint, Complaint> {
    let scheme = |scheme: &str| {
        let start = text.get(..scheme.len())?;
        let rest = &text[scheme.len()..];
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let (rest, is_tls) = match (scheme("https://"), scheme("http://")) {
        (Some(rest), _) => (rest, true),
        (None, Some(rest)) => (rest, false),
        (None, None) => (text, false),
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    };
    // "http://host:4317/" is gRPC still.
    let path = path.filter(|path| *path != "/").map(str::to_owned);
    let usual = match path {
        None => GRPC_PORT,
        Some(_) => HTTP_PORT,
    };
    let wrong = || format!("invalid endpoint \"{text}\": write host:port or http://host:port/path");
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (host, rest.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port: u16 = port.map_or(Ok(usual), str::parse).map_err(|_| wrong())?;
    let is_path = |path: &String| path.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'@';
    if host.is_empty() || port == 0 || !host.bytes().all(is_plain) || !path.iter().all(is_path) {
        return Err(wrong().into());
    }
    Ok(Endpoint {
        host: host.to_owned(),
        port,
        path,
        tls: if is_tls {
            Some(trusting(RootCertStore::empty(), Arc::default())?)
        } else {
            None
        },
    })
}

/// TLS that trusts the certificates of a file, or those of the system.
fn tls(
    file: Option<&str>,
    builder: &mut Builder<'_>,
) -> Result<(Arc<rustls::ClientConfig>, Arc<[u8]>), Complaint> {
    let path = match file {
        Some(file) => builder.environment.conf_folder().join(file),
        None => Path::new(SYSTEM_CERTIFICATES).to_path_buf(),
    };
    let pem = builder.environment.file(&path).map_err(|error| {
        let path = path.display();
        match file {
            Some(_) => format!("failed to open \"{path}\": {error}"),
            None => format!(
                "failed to open \"{path}\": {error}; name the certificates with \
                 \"trusted_certificate\""
            ),
        }
    })?;
    let trust = Trust::new(&pem, 1);
    let trust = trust.map_err(|why| format!("cannot load \"{}\" {why}", path.display()))?;
    let mut roots = RootCertStore::empty();
    for anchor in trust.anchors() {
        match (roots.add(anchor.clone()), file) {
            (Ok(()), _) => {}
            // The system's may have one that cannot be an anchor; other clients leave it out too.
            (Err(_), None) => {}
            (Err(why), Some(_)) => {
                let path = path.display();
                return Err(
                    format!("\"{path}\" has a certificate that cannot be used: {why}").into(),
                );
            }
        }
    }
    trusting(roots, pem)
}

fn trusting(
    roots: RootCertStore,
    pem: Arc<[u8]>,
) -> Result<(Arc<rustls::ClientConfig>, Arc<[u8]>), Complaint> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((Arc::new(config), pem))
}

/// The attributes of the resource: the last value of a name is used.
fn resource(view: View<'_>) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: &str| {
        all.retain(|(own, _)| own != name);
        all.push((name.to_owned(), value.to_owned()));
    };
    put("service.name", "unknown_service:nginx");
    for entry in view.own_all("otel_resource_attr") {
        put(entry.argument(0), entry.argument(1));
    }
    if let Some(name) = view.try_text("otel_service_name") {
        put("service.name", name);
    }
    all
}
