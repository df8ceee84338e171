//! What the program counts, in the order of `enum counter` in `bpf/maps.h`.

/// A counter: its name in status and metrics, and what it counts.
#[derive(Clone, Copy, Debug)]
pub struct CounterRow {
    pub name: &'static str,
    pub help: &'static str,
}

const fn row(name: &'static str, help: &'static str) -> CounterRow {
    CounterRow { name, help }
}

/// Every counter, by its place in the program's memory.
pub const COUNTERS: &[CounterRow] = &[
    row("hits", "Requests that were answered in the driver."),
    row("hit_bytes", "Bytes of those answers, heads included."),
    row(
        "syn_answered",
        "SYN segments that were answered with a cookie.",
    ),
    row(
        "acknowledgements",
        "Acknowledgements that needed no answer.",
    ),
    row("fin_answered", "FIN segments that were answered."),
    row("miss_key", "No answer is published for the target."),
    row(
        "miss_expired",
        "The answer was too old, or of another configuration.",
    ),
    row("miss_changing", "The answer was just being changed."),
    row(
        "miss_kept_alive",
        "The client wants to keep the connection.",
    ),
    row(
        "miss_coding",
        "The client accepts a coding that the answer may get.",
    ),
    row(
        "miss_window",
        "The client's window is smaller than the answer.",
    ),
    row(
        "miss_segment",
        "The answer does not fit into one segment of the client.",
    ),
    row(
        "miss_room",
        "The driver leaves too little room behind the request.",
    ),
    row("miss_checksum", "The segment is damaged."),
    row("miss_socket", "The connection is one of the kernel."),
    row("refused_none", "Always 0."),
    row("refused_method", "Not GET or HEAD."),
    row(
        "refused_target",
        "Not a path of plain characters, or a long one.",
    ),
    row("refused_version", "Not HTTP/1.0 or HTTP/1.1."),
    row(
        "refused_incomplete",
        "The head does not end in its first segment.",
    ),
    row("refused_pipelined", "More stands behind the head."),
    row("refused_malformed", "A field that is not plain text."),
    row(
        "refused_field",
        "A condition, a range, a password, a cookie or a body.",
    ),
    row("refused_host", "No Host, two, or a long one."),
    row("syn_passed", "SYN segments that were left to the kernel."),
    row("handed_over", "Connections that were handed to a listener."),
    row(
        "handover_failed",
        "Connections that the kernel did not take.",
    ),
    row(
        "dropped_changing",
        "Requests dropped since their answer changed meanwhile.",
    ),
    row(
        "dropped_client",
        "Segments of clients that express_drop keeps out.",
    ),
    row("sampled", "Samples of hits for access logs."),
    row(
        "sample_limited",
        "Samples that were left out, since there were many in a second.",
    ),
    row(
        "sample_lost",
        "Samples that were lost, since the lanes have read too few.",
    ),
];
