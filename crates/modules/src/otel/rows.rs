//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const HTTP: &[Context] = &[Context::Http];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "otel_exporter",
        contexts: HTTP,
        arguments: Arguments::none(),
        value: Value::Entries,
        merge: Merge::Own,
        syntax: "",
        summary: "Describes the OpenTelemetry collector: `endpoint`, `trusted_certificate`, \
            `header`, `interval` (5s), `batch_size` (512) and `batch_count` (4). An endpoint \
            `host:port` or `https://host:port` gets OTLP over gRPC; one with a path, such as \
            `http://host:4318/v1/traces`, gets OTLP over HTTP.",
        ..Row::PLAIN
    },
    Row {
        name: "otel_resource_attr",
        contexts: HTTP,
        arguments: Arguments::exactly(2),
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "name value",
        summary: "Adds an attribute to the resource that all spans belong to.",
        ..Row::PLAIN
    },
    Row {
        name: "otel_service_name",
        contexts: HTTP,
        value: Value::Text,
        merge: Merge::Own,
        syntax: "name",
        default: "unknown_service:nginx",
        summary: "The attribute `service.name` of the resource.",
        ..Row::PLAIN
    },
    Row {
        name: "otel_trace",
        syntax: "on | off | $variable",
        default: "off",
        summary: "Whether a span of the request is exported: a value of `on` or `1`. The decision \
            is made once for a request; internal redirects do not change it.",
        ..Row::PLAIN
    },
    Row {
        name: "otel_trace_context",
        value: Value::OneOf(&["ignore", "extract", "inject", "propagate"]),
        syntax: "extract | inject | propagate | ignore",
        default: "ignore",
        summary: "How the fields `traceparent` and `tracestate` are used: `extract` takes the \
                  trace and the parent from the request, `inject` sets the fields that upstream \
                  servers get, and `propagate` does both.",
        ..Row::PLAIN
    },
    Row {
        name: "otel_span_name",
        syntax: "name",
        summary: "The name of the span. Without it, the span has the location's name.",
        ..Row::PLAIN
    },
    Row {
        name: "otel_span_attr",
        arguments: Arguments::exactly(2),
        repeat: Repeat::Many,
        syntax: "name value",
        summary: "Adds an attribute to the span. The directives of a level replace those of the \
            levels above.",
        ..Row::PLAIN
    },
];
