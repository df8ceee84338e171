//! Tests of lists and of calls.

#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::list::parse;
use super::{Listener, listeners, next_call};

fn urls(text: &str) -> Result<Vec<String>, String> {
    let urls = parse("list", text.as_bytes())?;
    Ok(urls.iter().map(|url| url.text().to_owned()).collect())
}

#[test]
fn lists_are_lines_or_sitemaps() {
    let sitemap = "\u{feff}<?xml version=\"1.0\"?><urlset xmlns=\"x\"><url><loc> \
        https://a.example/?a=1&amp;b=2 </loc><lastmod>2026-01-01</lastmod></url>\
        <url><loc>https://a.example/</loc></url></urlset>";
    for (text, expected) in [
        (
            "# a comment\n\nhttp://a.example/1 5\n  HTTPS://a.example:8443/2#part\n",
            &["http://a.example/1", "HTTPS://a.example:8443/2"][..],
        ),
        (
            "http://a/\nhttp://a/\nhttp://[::1]:81/",
            &["http://a/", "http://[::1]:81/"],
        ),
        (
            sitemap,
            &["https://a.example/?a=1&b=2", "https://a.example/"],
        ),
    ] {
        assert_eq!(urls(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_is_no_list_is_refused_with_the_reason() {
    for (text, message) in [
        ("", "\"list\" names no URL"),
        (
            "http://a/\n/path",
            "list:2: \"/path\" does not begin with http://HOST or https://HOST",
        ),
        (
            "http://a:99999/",
            "list:1: \"http://a:99999/\" does not begin with http://HOST or https://HOST",
        ),
        (
            "<sitemapindex><sitemap><loc>http://a/s.xml</loc></sitemap></sitemapindex>",
            "\"list\" is an index of sitemaps: warm with each sitemap that it names",
        ),
        ("<html></html>", "\"list\" names no URL"),
    ] {
        assert_eq!(urls(text).unwrap_err(), message, "{text}");
    }
    let compressed = parse("list", &[0x1f, 0x8b, 8]).unwrap_err();
    assert!(
        compressed.starts_with("\"list\" is compressed"),
        "{compressed}"
    );
}

#[test]
fn calls_go_through_the_socket_with_the_port_of_their_urls() {
    let listeners = listeners(&json!({ "gates": [
        { "address": "0.0.0.0:80", "queue_max": 511, "proxy_protocol": false },
        { "address": "[::]:443", "queue_max": null },
        { "address": "unix:/s", "queue_max": null },
        { "address": "10.0.0.1:443", "queue_max": 511, "proxy_protocol": true },
    ] }));
    let listener = |address: &str, proxied| Listener {
        address: address.parse().unwrap(),
        proxied,
    };
    let known = [
        listener("127.0.0.1:80", false),
        listener("10.0.0.1:443", true),
    ];
    assert_eq!(listeners, known);
    let list = "http://a/1\nhttp://a/2\nhttps://a/\nhttp://a:81/\n";
    let urls = parse("list", list.as_bytes()).unwrap();
    assert_eq!(next_call(&urls, &listeners, 20), (2, Some(&known[0])));
    assert_eq!(next_call(&urls, &listeners, 1), (1, Some(&known[0])));
    assert_eq!(next_call(&urls[2..], &listeners, 20), (1, Some(&known[1])));
    assert_eq!(next_call(&urls[3..], &listeners, 20), (1, None));
    let long = format!("http://a/{}", "x".repeat(60_000));
    let urls = parse("list", long.as_bytes()).unwrap();
    assert_eq!(next_call(&urls, &listeners, 20).0, 1);
}
