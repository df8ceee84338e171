//! Tests of frames and their pictures.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::snapshot::Snapshot;
use super::{KeyAction, Order, View, picture};

/// The frame of a second: `requests` so far, half of them within 10 ms, the others within 20.
fn frame(second: u64, requests: u64) -> Snapshot {
    let counter = |name: &str, labels: Value, value: u64| {
        let samples = json!([{ "labels": labels, "value": value }]);
        json!({ "name": name, "samples": samples })
    };
    let times = json!([requests / 2, requests - requests / 2, 0]);
    let peer = json!({ "upstream": "u", "peer": "10.0.0.1:80" });
    let session = json!({ "upstream": "d", "peer": "10.0.0.2:53" });
    let server = |class: &str| json!({ "server": "a.example", "class": class });
    let frame = json!({
        "status": { "version": "0.1.0", "uptime_s": 3700, "generation": 4,
            "serving": { "lanes": 2, "connections_max": 1024 } },
        "metrics": { "unix_ms": second * 1000, "bounds_s": [0.01, 0.02], "metrics": [
            counter("requests", json!({ "lane": "0" }), requests),
            { "name": "requests_by_status", "samples": [
                { "labels": { "lane": "0", "status": "200" }, "value": requests },
                { "labels": { "lane": "0", "status": "502" }, "value": requests / 10 } ] },
            { "name": "request_seconds", "samples": [
                { "labels": { "lane": "0" }, "buckets": times, "sum": 1.0 } ] },
            counter("server_requests", server("2xx"), requests / 2),
            counter("upstream_requests", peer.clone(), requests),
            counter("upstream_available", peer, 0),
            counter("upstream_last_failure_timestamp_seconds",
                json!({ "upstream": "u", "peer": "10.0.0.1:80", "reason": "status 502" }), 1),
            counter("stream_upstream_sessions", session.clone(), requests / 4),
            counter("stream_upstream_available", session, 1),
            counter("cache_keys", json!({ "zone": "Z" }), 7),
            { "name": "cache_answers", "samples": [
                { "labels": { "zone": "Z", "status": "HIT" }, "value": requests },
                { "labels": { "zone": "Z", "status": "MISS" }, "value": requests } ] },
            counter("connections_closed", json!({ "reason": "client_reset" }), requests),
            counter("limit_req_rejected", json!({ "zone": "z" }), requests),
        ] },
    });
    Snapshot::parse(frame.to_string().as_bytes()).expect("a frame")
}

fn shown(view: &View) -> String {
    shown_in(view, 40)
}

fn shown_in(view: &View, rows: u16) -> String {
    shown_on(view, 100, rows)
}

fn shown_on(view: &View, columns: u16, rows: u16) -> String {
    let backend = TestBackend::new(columns, rows);
    let mut terminal = Terminal::new(backend).expect("a terminal in memory");
    terminal
        .draw(|area| picture::draw(area, view))
        .expect("a terminal in memory");
    terminal.backend().to_string()
}

fn key(view: &mut View, code: KeyCode) -> KeyAction {
    view.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn rates_are_computed_from_two_frames() {
    let mut view = View::default();
    view.take(frame(1, 1000));
    view.take(frame(3, 5000));
    let picture = shown(&view);
    for text in [
        "turnpike 0.1.0  up 1h 1m  generation 4  lanes 2  all servers",
        "requests     2.0k/s",
        "in 0 B/s   out 0 B/s",
        "open 0 of 1.0k: ",
        "p50 10.0 ms   p90 18.0 ms",
        "2xx 2.0k/s",
        "5xx 200/s",
        "10.0.0.1:80  u         out",
        "status 502, 2s ago",
        "50.0 %",
        "client reset 2.0k   limit_req z 2.0k",
    ] {
        assert!(picture.contains(text), "{text} is not in\n{picture}");
    }
}

#[test]
fn a_small_terminal_shows_every_row_and_a_lower_graph_or_none() {
    let mut view = View::default();
    view.take(frame(1, 1000));
    view.take(frame(3, 5000));
    for (rows, has_graph) in [(40, true), (26, true), (24, false), (22, false)] {
        let shown = shown_in(&view, rows);
        assert_eq!(shown.contains("requests per second"), has_graph, "{shown}");
        for text in ["│10.0.0.1:80 ", "│Z ", "│client reset ", "q quit"] {
            assert!(shown.contains(text), "{text} in {rows} rows: {shown}");
        }
        assert!(!shown.contains(" more)"), "{rows} rows: {shown}");
    }
}

#[test]
fn a_narrow_terminal_cuts_names_and_no_figures() {
    let mut view = View::default();
    view.take(frame(1, 1000));
    view.take(frame(3, 5000));
    for columns in [100, 80, 72, 64] {
        let shown = shown_on(&view, columns, 40);
        for text in ["ACTIVE REQ/S", "FAIL/S 5XX/S", "ROUND P99"] {
            let spaced = text.replace(' ', "  ");
            assert!(
                shown.contains(text) || shown.contains(&spaced),
                "{columns}: {shown}"
            );
        }
    }
}

#[test]
fn the_graph_takes_the_free_rows_has_figures_and_begins_at_the_right() {
    let mut view = View::default();
    view.take(frame(1, 1000));
    view.take(frame(3, 5000));
    let shown = shown_on(&view, 100, 50);
    let lines: Vec<&str> = shown.lines().collect();
    let begin = lines
        .iter()
        .position(|line| line.contains("requests per second"))
        .expect("the graph");
    let end = lines
        .iter()
        .position(|line| line.contains("┌lanes"))
        .expect("the lanes");
    assert!(end - begin > 15, "{shown}");
    assert!(lines[begin + 1].contains("│ 2.0k"), "{shown}");
    assert!(lines[begin + 1].contains("█│"), "{shown}");
    assert!(lines[end - 2].contains("│    0"), "{shown}");
}

#[test]
fn heavy_hitters_have_their_figures_and_five_of_a_kind_are_shown() {
    let names: Vec<String> = (0..9).map(|number| format!("a.example/{number}")).collect();
    let ranking = |name: &str, value: f64| {
        let sample = |name| json!({ "labels": { "subject": "url", "name": name }, "value": value });
        let samples: Vec<Value> = names.iter().map(sample).collect();
        json!({ "name": name, "samples": samples })
    };
    let frame = json!({ "status": {}, "metrics": { "unix_ms": 1000, "metrics": [
        ranking("heavy_hitter_requests", 400.0),
        ranking("heavy_hitter_seconds", 30.0),
        ranking("heavy_hitter_slowest_seconds", 2.0),
        ranking("heavy_hitter_server_errors", 7.0),
    ] } });
    let mut view = View::default();
    view.take(Snapshot::parse(frame.to_string().as_bytes()).expect("a frame"));
    let shown = shown(&view);
    for text in [
        "heaviest in the last minute",
        "a.example/0  url   400       30.00 s  75.0 ms  2.00 s   7",
        "a.example/4  url",
    ] {
        assert!(shown.contains(text), "{text} is not in\n{shown}");
    }
    assert!(!shown.contains("a.example/5"), "{shown}");
}

#[test]
fn tables_of_a_small_terminal_have_entries_or_are_left_out() {
    let counter = |name: &str, labels: Vec<Value>| {
        let sample = |labels| json!({ "labels": labels, "value": 1 });
        let samples: Vec<Value> = labels.into_iter().map(sample).collect();
        json!({ "name": name, "samples": samples })
    };
    let named = |label: &str, count: usize| {
        let one = |number: usize| json!({ label: format!("n{number}"), "subject": "url" });
        (0..count).map(one).collect()
    };
    let frame = json!({ "status": {}, "metrics": { "unix_ms": 1000, "metrics": [
        counter("requests", named("lane", 4)),
        counter("upstream_requests", named("peer", 5)),
        counter("heavy_hitter_requests", named("name", 9)),
        counter("cache_keys", named("zone", 2)),
        counter("cache_host_requests", named("host", 7)),
    ] } });
    let mut view = View::default();
    view.take(Snapshot::parse(frame.to_string().as_bytes()).expect("a frame"));
    for rows in 12..60 {
        let shown = shown_in(&view, rows);
        let lines: Vec<&str> = shown.lines().collect();
        for (line, next) in lines.iter().zip(&lines[1..]) {
            let is_head = ["│LANE", "│SERVER", "│NAME", "│ZONE", "│HOST"];
            if is_head.iter().any(|head| line.contains(head)) {
                assert!(next.contains("│n0"), "{rows} rows: {shown}");
            }
        }
    }
    let shown = shown_in(&view, 24);
    for text in [
        "upstream servers (",
        "heaviest in the last minute (",
        "lanes (",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

#[test]
fn restarted_counts_give_no_negative_rate() {
    let (old, new) = (frame(1, 5000), frame(2, 100));
    assert_eq!(new.rate(&old, "requests", &[]), 100.0);
    assert_eq!(new.rate(&new, "requests", &[]), 0.0);
    let times = new.times(&old, "request_seconds", &[]);
    assert_eq!(times.percentile(100.0), Some(0.02));
    assert_eq!(
        new.times(&new, "request_seconds", &[]).percentile(50.0),
        None
    );
}

#[test]
fn keys_pause_sort_choose_a_server_and_quit() {
    let mut view = View::default();
    view.take(frame(1, 1000));
    view.take(frame(2, 2000));
    assert_eq!(key(&mut view, KeyCode::Char('p')), KeyAction::Draw);
    view.take(frame(3, 9000));
    let picture = shown(&view);
    assert!(
        picture.contains("PAUSED") && picture.contains("requests     1.0k/s"),
        "{picture}"
    );
    key(&mut view, KeyCode::Char('p'));
    key(&mut view, KeyCode::Char('s'));
    assert_eq!(view.order, Order::Requests);
    key(&mut view, KeyCode::Tab);
    assert!(shown(&view).contains("server a.example"));
    assert!(shown(&view).contains("requests     500/s") || shown(&view).contains("2xx 500/s"));
    key(&mut view, KeyCode::Tab);
    assert_eq!(view.server, None);
    assert_eq!(key(&mut view, KeyCode::Char('x')), KeyAction::Nothing);
    assert_eq!(key(&mut view, KeyCode::Char('q')), KeyAction::Quit);
}

#[test]
fn lines_that_are_no_frames_are_skipped() {
    for line in ["", "{}", "{\"metrics\":3}", "not JSON"] {
        assert!(Snapshot::parse(line.as_bytes()).is_none(), "{line}");
    }
}
