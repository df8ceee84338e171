//! The picture of `turnpike top`: a line for each subject, a graph, and tables.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};

use super::snapshot::{Sample, Snapshot, Times};
use super::{Order, View};

/// The least rows of the graph with its border: it takes what the tables leave, and is left out on
/// a small terminal, since the tables have the figures.
const GRAPH_ROWS_MIN: u16 = 4;

/// The columns of the figures beside the graph.
const AXIS_COLUMNS: u16 = 6;

/// The least columns of the names in a table that is too wide: the figures are not cut.
const NAME_COLUMNS_MIN: usize = 8;

/// The rows of a table with one entry: its border, its head and that.
const TABLE_ROWS_MIN: u16 = 4;

/// The rows of the title, the figures, the errors and the keys.
const OTHER_ROWS: u16 = 1 + 4 + 3 + 1;

/// The columns of lanes.
const LANE_HEAD: &[&str] = &[
    "LANE",
    "REQ/S",
    "CONN/S",
    "OPEN",
    "QUEUE",
    "P50",
    "P99",
    "ROUND P99",
];

/// The columns of upstream servers.
const PEER_HEAD: &[&str] = &[
    "SERVER",
    "UPSTREAM",
    "STATE",
    "ACTIVE",
    "REQ/S",
    "FAIL/S",
    "5XX/S",
    "P50",
    "P99",
    "LAST FAILURE",
];

/// The columns of a terminal that shows the last failures of upstream servers: a narrow one has no
/// room for them.
const LAST_FAILURE_COLUMNS_MIN: u16 = 100;

/// The columns of heavy hitters.
const HEAVY_HEAD: &[&str] = &[
    "NAME", "KIND", "REQUESTS", "TIME", "AVERAGE", "SLOWEST", "5XX",
];

/// The heavy hitters of each kind that are shown: there are other tables.
const HEAVY_SHOWN_MAX: usize = 5;

/// The columns of zones of the cache.
const ZONE_HEAD: &[&str] = &[
    "ZONE", "REQ/S", "HITS", "SAVED/S", "FULL", "KEYS", "SIZE", "EVICT/S",
];

/// The columns of hosts whose answers come from caches.
const HOST_HEAD: &[&str] = &["HOST", "REQ/S", "HITS", "SAVED/S"];

/// The percentiles of latency.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// The reasons of normal closes of connections.
const GOOD_ENDS: [&str; 5] = [
    "answered",
    "client_closed",
    "idle_timeout",
    "tunnel_ended",
    "drained",
];

/// One row of a table, with its sort keys.
struct Entry {
    cells: Vec<String>,
    requests: f64,
    latency: f64,
}

/// Draws the view.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let errors = errors(view);
    let (lanes, peers, zones) = (lanes(view), peers(view), zones(view));
    let (heavy, hosts) = (heavy(view), hosts(view));
    let wanted = [&lanes, &peers, &heavy, &zones, &hosts].map(|entries| match entries.len() {
        0 => 0,
        count => u16::try_from(count + 3).unwrap_or(u16::MAX),
    });
    let tables = table_rows(frame.area().height.saturating_sub(OTHER_ROWS), wanted);
    let areas = [
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(graph_rows(frame.area(), &tables)),
        Constraint::Length(tables[0]),
        Constraint::Length(tables[1]),
        Constraint::Length(tables[2]),
        Constraint::Length(tables[3]),
        Constraint::Length(tables[4]),
        Constraint::Length(3),
        Constraint::Length(1),
    ];
    let [
        head,
        figures,
        graph,
        lane_area,
        peer_area,
        heavy_area,
        zone_area,
        host_area,
        error_area,
        foot,
    ] = Layout::vertical(areas).areas(frame.area());
    frame.render_widget(title(view), head);
    frame.render_widget(Paragraph::new(figure_lines(view)), figures);
    draw_graph(frame, graph, view);
    draw_table(frame, lane_area, "lanes", LANE_HEAD, lanes);
    let peer_head = match peer_area.width {
        ..LAST_FAILURE_COLUMNS_MIN => &PEER_HEAD[..PEER_HEAD.len() - 1],
        _ => PEER_HEAD,
    };
    draw_table(frame, peer_area, "upstream servers", peer_head, peers);
    draw_table(
        frame,
        heavy_area,
        "heaviest in the last minute",
        HEAVY_HEAD,
        heavy,
    );
    draw_table(frame, zone_area, "cache", ZONE_HEAD, zones);
    draw_table(frame, host_area, "cache by host", HOST_HEAD, hosts);
    let block = Block::bordered().title("errors per second");
    frame.render_widget(Paragraph::new(errors).block(block), error_area);
    let keys = format!(
        "q quit   p {}   s sort by {}   Tab server",
        if view.is_paused { "go on" } else { "pause" },
        view.order.next().text(),
    );
    frame.render_widget(
        Paragraph::new(keys).style(Style::default().fg(Color::DarkGray)),
        foot,
    );
}

/// The rows of each table, of which there are so many in all: tables that matter more come first
/// (upstream servers, heavy hitters, lanes, zones, hosts). One that would have nothing but its
/// head is left out.
fn table_rows(mut room: u16, wanted: [u16; 5]) -> [u16; 5] {
    const FIRST_TO_LAST: [usize; 5] = [1, 2, 0, 3, 4];
    let mut given = [0; 5];
    for table in FIRST_TO_LAST {
        let least = wanted[table].min(TABLE_ROWS_MIN);
        if least <= room {
            given[table] = least;
            room -= least;
        }
    }
    // Each turn gives a row to at least one table, or is the last.
    loop {
        let before = room;
        for table in FIRST_TO_LAST {
            if given[table] > 0 && given[table] < wanted[table] && room > 0 {
                given[table] += 1;
                room -= 1;
            }
        }
        if room == before {
            return given;
        }
    }
}

/// The rows of the graph in an area with tables of so many rows.
fn graph_rows(area: Rect, tables: &[u16]) -> u16 {
    let rows = tables
        .iter()
        .fold(OTHER_ROWS, |sum, rows| sum.saturating_add(*rows));
    match area.height.saturating_sub(rows) {
        ..GRAPH_ROWS_MIN => 0,
        rows => rows,
    }
}

fn title(view: &View) -> Paragraph<'_> {
    let status = view.now.status();
    let shown = view
        .server
        .as_ref()
        .map_or("all servers".to_owned(), |name| format!("server {name}"));
    let text = format!(
        "turnpike {}  up {}  generation {}  lanes {}  {shown}",
        status["version"].as_str().unwrap_or("-"),
        duration(status["uptime_s"].as_u64().unwrap_or_default()),
        status["generation"],
        status["serving"]["lanes"],
    );
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let mut spans = vec![Span::styled(text, bold)];
    if view.is_paused {
        spans.push(Span::styled("  PAUSED", bold.fg(Color::Yellow)));
    }
    Paragraph::new(Line::from(spans))
}

/// Requests, traffic, latency and statuses, of all servers or of one.
fn figure_lines(view: &View) -> Vec<Line<'static>> {
    let (now, before) = (&view.now, &view.before);
    let server = view.server.as_deref();
    let labels: Vec<(&str, &str)> = server.map(|name| ("server", name)).into_iter().collect();
    let prefix = if server.is_some() { "server_" } else { "" };
    let rate = |row: &str| now.rate(before, &format!("{prefix}{row}"), &labels);
    let requests = Line::from(format!(
        "requests     {}/s   in {}/s   out {}/s",
        short(rate("requests")),
        bytes(rate("received_bytes")),
        bytes(rate("sent_bytes")),
    ));
    let most = now.status()["serving"]["connections_max"].as_u64();
    let connections = Line::from(format!(
        "connections  {}/s   open {}{}: {} reading, {} writing, {} waiting",
        short(now.rate(before, "connections_accepted", &[])),
        short(now.sum("connections_active", &[])),
        most.map_or(String::new(), |most| format!(" of {}", short(most as f64))),
        short(now.sum("connections_reading", &[])),
        short(now.sum("connections_writing", &[])),
        short(now.sum("connections_waiting", &[])),
    ));
    let times = now.times(before, &format!("{prefix}request_seconds"), &labels);
    let percentiles = PERCENTILES.iter();
    let percentiles =
        percentiles.map(|percent| format!("p{percent} {}", percentile(&times, *percent)));
    let percentiles: Vec<String> = percentiles.collect();
    let latency = Line::from(format!("latency      {}", percentiles.join("   ")));
    vec![requests, connections, latency, statuses(view)]
}

/// The answers by the first digit of their status.
fn statuses(view: &View) -> Line<'static> {
    let mut spans = vec![Span::raw("statuses     ")];
    let colours = [
        Color::Reset,
        Color::Green,
        Color::Cyan,
        Color::Yellow,
        Color::Red,
    ];
    for (digit, colour) in ('1'..='5').zip(colours) {
        let rate = match &view.server {
            Some(name) => {
                let class = format!("{digit}xx");
                let labels = [("server", name.as_str()), ("class", class.as_str())];
                view.now.rate(&view.before, "server_requests", &labels)
            }
            None => status_rate(view, digit),
        };
        let text = format!("{digit}xx {}/s   ", short(rate));
        let colour = if rate > 0.0 { colour } else { Color::DarkGray };
        spans.push(Span::styled(text, Style::default().fg(colour)));
    }
    Line::from(spans)
}

fn status_rate(view: &View, digit: char) -> f64 {
    let statuses = view.now.labels("requests_by_status", "status");
    let own = statuses.iter().filter(|status| status.starts_with(digit));
    let rates = own.map(|status| {
        view.now.rate(
            &view.before,
            "requests_by_status",
            &[("status", status.as_str())],
        )
    });
    rates.fold(0.0, |sum, rate| sum + rate)
}

fn draw_graph(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let block = Block::bordered();
    let inner = block.inner(area);
    let columns = [Constraint::Length(AXIS_COLUMNS), Constraint::Min(0)];
    let [axis, graph] = Layout::horizontal(columns).areas(inner);
    let width = usize::from(graph.width);
    let first = view.rates.len().saturating_sub(width);
    let shown: Vec<u64> = view.rates.iter().skip(first).copied().collect();
    let most = shown.iter().max().copied().unwrap_or_default();
    let title = format!("requests per second, last {} s", shown.len());
    frame.render_widget(block.title(title), area);
    let height = usize::from(axis.height);
    let figure = |row: usize| match row {
        0 => short(most as f64),
        row if row + 1 == height => "0".to_owned(),
        row if row * 2 == height - 1 => short(most as f64 / 2.0),
        _ => String::new(),
    };
    let figures: Vec<Line<'_>> = (0..height)
        .map(|row| Line::from(format!("{:>5}", figure(row))))
        .collect();
    frame.render_widget(Paragraph::new(figures), axis);
    // The present is at the right, also while there is little of the past.
    let mut columns = vec![0; width.saturating_sub(shown.len())];
    columns.extend(shown);
    let style = Style::default().fg(Color::Cyan);
    let bars = Sparkline::default().data(&columns).max(most.max(1));
    frame.render_widget(bars.style(style), graph);
}

/// The widths of columns and the space between them: where there is little room the space is
/// smaller, and then the name in the first column is cut.
fn widths(mut widths: Vec<usize>, room: usize) -> (Vec<usize>, usize) {
    let gaps = widths.len().saturating_sub(1);
    let total: usize = widths.iter().sum();
    let spacing = if total + gaps * 2 > room { 1 } else { 2 };
    let excess = (total + gaps * spacing).saturating_sub(room);
    if let Some(name) = widths.first_mut() {
        *name = name.saturating_sub(excess).max(NAME_COLUMNS_MIN.min(*name));
    }
    (widths, spacing)
}

/// A text in at most so many columns, with a mark where it is cut.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    kept + "…"
}

fn draw_table(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    head: &[&'static str],
    entries: Vec<Entry>,
) {
    if entries.is_empty() {
        return;
    }
    let width = |column: usize| {
        let cells = entries.iter().filter_map(|entry| entry.cells.get(column));
        let cells = cells.map(|cell| cell.chars().count());
        cells.max().unwrap_or_default().max(head[column].len())
    };
    let inside = usize::from(area.width.saturating_sub(2));
    let (widths, spacing) = widths((0..head.len()).map(width).collect(), inside);
    let name_columns = widths.first().copied().unwrap_or_default();
    let widths = widths.iter().map(|width| {
        let columns = u16::try_from(*width).unwrap_or(u16::MAX);
        Constraint::Length(columns)
    });
    let widths: Vec<Constraint> = widths.collect();
    let room = usize::from(area.height.saturating_sub(3));
    let hidden = entries.len().saturating_sub(room);
    let title = match hidden {
        0 => title.to_owned(),
        hidden => format!("{title} ({hidden} more)"),
    };
    let rows = entries.into_iter().map(|mut entry| {
        if let Some(name) = entry.cells.first_mut() {
            *name = cut(name, name_columns);
        }
        entry.cells.truncate(head.len());
        Row::new(entry.cells)
    });
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let table = Table::new(rows, widths)
        .header(Row::new(head.to_vec()).style(bold))
        .column_spacing(u16::try_from(spacing).unwrap_or_default())
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn sorted(mut entries: Vec<Entry>, order: Order) -> Vec<Entry> {
    match order {
        Order::Name => {}
        Order::Requests => entries.sort_by(|one, other| other.requests.total_cmp(&one.requests)),
        Order::Latency => entries.sort_by(|one, other| other.latency.total_cmp(&one.latency)),
    }
    entries
}

fn lanes(view: &View) -> Vec<Entry> {
    let (now, before) = (&view.now, &view.before);
    let entry = |lane: &String| {
        let labels = [("lane", lane.as_str())];
        let times = now.times(before, "request_seconds", &labels);
        let rounds = now.times(before, "loop_round_seconds", &labels);
        let requests = now.rate(before, "requests", &labels);
        Entry {
            requests,
            latency: times.percentile(99.0).unwrap_or_default(),
            cells: vec![
                lane.clone(),
                short(requests),
                short(now.rate(before, "connections_accepted", &labels)),
                short(now.sum("connections_active", &labels)),
                short(now.sum("accept_queue", &labels)),
                percentile(&times, 50.0),
                percentile(&times, 99.0),
                percentile(&rounds, 99.0),
            ],
        }
    };
    let names = now.labels("requests", "lane");
    sorted(names.iter().map(entry).collect(), view.order)
}

/// The metrics of servers: of `http`, and of `stream`, whose sessions count as requests.
const PEER_METRICS: [PeerMetrics; 2] = [
    PeerMetrics {
        prefix: "",
        requests: "upstream_requests",
        failures: "upstream_failures",
        active: "upstream_active",
        available: "upstream_available",
        times: "upstream_response_seconds",
        last_failure: "upstream_last_failure_timestamp_seconds",
    },
    PeerMetrics {
        prefix: "stream:",
        requests: "stream_upstream_sessions",
        failures: "stream_upstream_failures",
        active: "stream_upstream_active",
        available: "stream_upstream_available",
        times: "stream_upstream_session_seconds",
        last_failure: "stream_upstream_last_failure_timestamp_seconds",
    },
];

/// The names of the metrics of one kind of servers.
struct PeerMetrics {
    /// The text before the name of a group.
    prefix: &'static str,
    requests: &'static str,
    failures: &'static str,
    active: &'static str,
    available: &'static str,
    times: &'static str,
    last_failure: &'static str,
}

fn peers(view: &View) -> Vec<Entry> {
    let all = PEER_METRICS.iter();
    sorted(
        all.flat_map(|rows| peers_of(view, rows)).collect(),
        view.order,
    )
}

fn peers_of(view: &View, rows: &PeerMetrics) -> Vec<Entry> {
    let (now, before) = (&view.now, &view.before);
    let entry = |sample: Sample<'_>| {
        let (upstream, peer) = (sample.label("upstream"), sample.label("peer"));
        let labels = [("upstream", upstream), ("peer", peer)];
        let failed = [labels[0], labels[1], ("class", "5xx")];
        let times = now.times(before, rows.times, &labels);
        let requests = now.rate(before, rows.requests, &labels);
        let state = if now.sum(rows.available, &labels) > 0.0 {
            "up"
        } else {
            "out"
        };
        Entry {
            requests,
            latency: times.percentile(99.0).unwrap_or_default(),
            cells: vec![
                peer.to_owned(),
                format!("{}{upstream}", rows.prefix),
                state.to_owned(),
                short(now.sum(rows.active, &labels)),
                short(requests),
                short(now.rate(before, rows.failures, &labels)),
                short(now.rate(before, "upstream_responses", &failed)),
                percentile(&times, 50.0),
                percentile(&times, 99.0),
                last_failure(now, rows, &labels),
            ],
        }
    };
    now.samples(rows.requests).map(entry).collect()
}

/// Why a server failed last, and how long ago; `-` if it has never failed.
fn last_failure(now: &Snapshot, rows: &PeerMetrics, labels: &[(&str, &str)]) -> String {
    let mut samples = now.samples(rows.last_failure);
    let Some(sample) = samples.find(|sample| sample.has(labels)) else {
        return "-".to_owned();
    };
    let ago_s = (now.seconds() - sample.value()).max(0.0);
    format!("{}, {} ago", sample.label("reason"), duration(ago_s as u64))
}

/// The heaviest URLs, then hosts, then clients.
fn heavy(view: &View) -> Vec<Entry> {
    let now = &view.now;
    let entry = |sample: Sample<'_>| {
        let subject = sample.label("subject");
        let labels = [("subject", subject), ("name", sample.label("name"))];
        let requests = sample.value();
        let seconds = now.sum("heavy_hitter_seconds", &labels);
        let slowest = now.sum("heavy_hitter_slowest_seconds", &labels);
        let errors = now.sum("heavy_hitter_server_errors", &labels);
        Entry {
            requests,
            latency: seconds,
            cells: vec![
                sample.label("name").to_owned(),
                subject.to_owned(),
                short(requests),
                time(seconds),
                time(seconds / requests.max(1.0)),
                time(slowest),
                short(errors),
            ],
        }
    };
    let kinds = now.labels("heavy_hitter_requests", "subject");
    let of_kind = |kind: &String| {
        let kind = [("subject", kind.as_str())];
        let own = now.samples("heavy_hitter_requests");
        let own = own.filter(|sample| sample.has(&kind)).take(HEAVY_SHOWN_MAX);
        own.map(entry).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(of_kind).collect()
}

fn zones(view: &View) -> Vec<Entry> {
    let (now, before) = (&view.now, &view.before);
    let entry = |zone: &String| {
        let labels = [("zone", zone.as_str())];
        let requests = now.rate(before, "cache_answers", &labels);
        Entry {
            requests,
            latency: 0.0,
            cells: vec![
                zone.clone(),
                short(requests),
                hits(now, before, zone, requests),
                format!(
                    "{}/s",
                    bytes(now.rate(before, "cache_saved_bytes", &labels))
                ),
                format!("{:.1} %", now.sum("cache_filled_ratio", &labels) * 100.0),
                short(now.sum("cache_keys", &labels)),
                bytes(now.sum("cache_bytes", &labels)),
                short(now.rate(before, "cache_evicted", &labels)),
            ],
        }
    };
    let names = now.labels("cache_keys", "zone");
    sorted(names.iter().map(entry).collect(), view.order)
}

/// The hosts whose answers come from caches, where there are several.
fn hosts(view: &View) -> Vec<Entry> {
    let (now, before) = (&view.now, &view.before);
    let entry = |host: &String| {
        let labels = [("host", host.as_str())];
        let rate = |row| now.rate(before, row, &labels);
        let requests = rate("cache_host_requests");
        Entry {
            requests,
            latency: 0.0,
            cells: vec![
                host.clone(),
                short(requests),
                share(rate("cache_host_hits"), requests),
                format!("{}/s", bytes(rate("cache_host_saved_bytes"))),
            ],
        }
    };
    let names = now.labels("cache_host_requests", "host");
    if names.len() < 2 {
        return Vec::new();
    }
    sorted(names.iter().map(entry).collect(), view.order)
}

/// A part of a rate; `-` of nothing.
fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 {
        format!("{:.1} %", part * 100.0 / whole)
    } else {
        "-".to_owned()
    }
}

/// The share of a zone's answers that came from the zone.
fn hits(now: &Snapshot, before: &Snapshot, zone: &str, requests: f64) -> String {
    let kinds = ["HIT", "STALE", "UPDATING", "REVALIDATED"];
    let rates = kinds.iter().map(|status| {
        now.rate(
            before,
            "cache_answers",
            &[("zone", zone), ("status", status)],
        )
    });
    share(rates.fold(0.0, |sum, rate| sum + rate), requests)
}

/// All kinds of errors, each with its rate; in red if the rate is not 0.
fn errors(view: &View) -> Line<'static> {
    let (now, before) = (&view.now, &view.before);
    let mut found: Vec<(String, f64)> = Vec::new();
    for reason in now.labels("connections_closed", "reason") {
        if !GOOD_ENDS.contains(&reason.as_str()) {
            let rate = now.rate(before, "connections_closed", &[("reason", reason.as_str())]);
            found.push((reason.replace('_', " "), rate));
        }
    }
    for (row, name) in [("panics", "panics"), ("log_lines_lost", "log lines lost")] {
        found.push((name.to_owned(), now.rate(before, row, &[])));
    }
    for row in ["limit_req_rejected", "limit_conn_rejected"] {
        for zone in now.labels(row, "zone") {
            let rate = now.rate(before, row, &[("zone", zone.as_str())]);
            found.push((format!("{} {zone}", row.replace("_rejected", "")), rate));
        }
    }
    found.retain(|(_, rate)| *rate > 0.0);
    if found.is_empty() {
        return Line::styled("none", Style::default().fg(Color::Green));
    }
    let texts: Vec<String> = found
        .iter()
        .map(|(name, rate)| format!("{name} {}", short(*rate)))
        .collect();
    Line::styled(texts.join("   "), Style::default().fg(Color::Red))
}

/// A percentile as text; `-` if nothing was measured.
fn percentile(times: &Times, percent: f64) -> String {
    times.percentile(percent).map_or("-".to_owned(), time)
}

/// A time as text.
fn time(seconds: f64) -> String {
    match seconds {
        ..0.001 => format!("{:.0} µs", seconds * 1e6),
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// A number in at most six columns: `12`, `1.2k`, `34M`.
fn short(value: f64) -> String {
    scaled(value, 1000.0, ["", "k", "M", "G"])
}

/// Bytes in powers of 1024: `512 B`, `1.5 KiB`.
fn bytes(value: f64) -> String {
    scaled(value, 1024.0, [" B", " KiB", " MiB", " GiB"])
}

fn scaled(mut value: f64, step: f64, units: [&str; 4]) -> String {
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    match (unit, value) {
        (0, value) if value.fract() == 0.0 || value >= 100.0 => {
            format!("{value:.0}{}", units[0])
        }
        (_, value) if value < 100.0 => format!("{value:.1}{}", units[unit]),
        (_, value) => format!("{value:.0}{}", units[unit]),
    }
}

/// Seconds in their two greatest units.
fn duration(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, minutes) => format!("{minutes}m {rest}s"),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}
