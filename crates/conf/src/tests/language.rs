//! Tests of texts with their trees or errors. Messages and lines are those of nginx 1.22 for each
//! text, up to nginx's first error, where it stops.

use super::{MAIN, files, main_path, show};
use crate::error::ERRORS_MAX;
use crate::parse::{BLOCK_DEPTH_MAX, INCLUDE_DEPTH_MAX, parse};
use crate::text::{bytes_of, text_of};
use crate::tree::Span;
use crate::{FileId, Loader};

#[test]
fn words_are_read_as_nginx_reads_them() {
    let table: &[(&str, &str)] = &[
        ("", ""),
        (" \t\r\n", ""),
        ("# only a comment", ""),
        ("a;", "<a>"),
        // Unlike nginx: editors put a byte order mark there.
        ("\u{feff}a;", "<a>"),
        ("\u{feff}\u{feff}a;", "<\u{feff}a>"),
        ("a;\u{feff}b;", "<a> <\u{feff}b>"),
        ("a b;c d;", "<a><b> <c><d>"),
        ("a b # c\n d;", "<a><b><d>"),
        ("a b#c;", "<a><b#c>"),
        ("a{b c;}", "<a>{<b><c>}"),
        ("a {}\nb;", "<a>{} <b>"),
        ("a \"b c\" 'd \"e';", "<a><b c><d \"e>"),
        ("a \"x;{}#\";", "<a><x;{}#>"),
        ("a \"\" '';", "<a><><>"),
        ("a b\"c d\";", "<a><b\"c><d\">"),
        ("\"a\" b;", "<a><b>"),
        (r#"a "\"\'\\\t\r\n\d";"#, "<a><\"'\\\t\r\n\\d>"),
        (r"a b\ c\;\{d;", r"<a><b\ c\;\{d>"),
        (r"a \# b;", r"<a><\#><b>"),
        (r"a \$b;", r"<a><\$b>"),
        ("a ${b}c;", "<a><${b}c>"),
        ("a x${b}{c;}", "<a><x${b}>{<c>}"),
        ("a ${{b};", "<a><${{b}>"),
        ("a $b{c;}", "<a><$b>{<c>}"),
        ("a b}c;", "<a><b}c>"),
        ("if ($x = \"y\") {a;}", "<if><($x><=><y><)>{<a>}"),
        ("if (\"y\"){a;}", "<if><(\"y\")>{<a>}"),
        ("a\r\nb\r\n;\r\n", "<a><b>"),
        ("\u{FEFF}a b;", "<a><b>"),
        ("a \u{FEFF}b;", "<a><\u{FEFF}b>"),
        ("a ünï;", "<a><ünï>"),
        ("a\n#;\nb;", "<a><b>"),
        ("a 'x\n\ny' b;", "<a><x\n\ny><b>"),
    ];
    for (text, expected) in table {
        let tree = parse(&files(text.as_bytes(), &[]), main_path(), None).unwrap();
        assert_eq!(show(&tree.directives), *expected, "{text}");
    }
}

#[test]
fn a_directive_knows_its_bytes() {
    let table: &[(&str, &[&str])] = &[
        ("a;", &["a;"]),
        (
            "\u{FEFF} a b ; # c\n'd' \"e;\" ;",
            &["a b ;", "'d' \"e;\" ;"],
        ),
        ("a { b c; d {} } e;", &["a {", "b c;", "d {", "e;"]),
        ("# a;\nb\n c\n;", &["b\n c\n;"]),
        ("a \"b\"{c\\;d;}", &["a \"b\"{", "c\\;d;"]),
        ("a 'b';c;", &["a 'b';", "c;"]),
    ];
    for (text, expected) in table {
        let tree = parse(&files(text.as_bytes(), &[]), main_path(), None).unwrap();
        let mut found = Vec::new();
        let mut left: Vec<_> = tree.directives.iter().rev().collect();
        while let Some(directive) = left.pop() {
            left.extend(directive.block.iter().flatten().rev());
            let (start, end) = (directive.bytes.start, directive.bytes.end);
            found.push(&text[start as usize..end as usize]);
        }
        assert_eq!(found, *expected, "{text}");
    }
}

/// Text and its errors; `F` is the main file.
const MISTAKES: &[(&str, &[&str])] = &[
    (";", &["unexpected \";\" in F:1"]),
    ("\n\n{}", &["unexpected \"{\" in F:3"]),
    ("}", &["unexpected \"}\" in F:1"]),
    (
        "a b }",
        &["unexpected \"}\", is a \";\" missing in line 1? in F:1"],
    ),
    (
        "h {\n a b\n}\nc;",
        &["unexpected \"}\", is a \";\" missing in line 2? in F:3"],
    ),
    ("a \"b\"c;", &["unexpected \"c\" in F:1"]),
    ("a \"b\"é;", &["unexpected \"é\" in F:1"]),
    (
        "a 'b'}",
        &["unexpected \"}\", is a \";\" missing in line 1? in F:1"],
    ),
    (
        "a",
        &["unexpected end of file, expecting \";\" or \"}\" in F:1"],
    ),
    (
        "a b\n\n",
        &["unexpected end of file, expecting \";\" or \"}\" in F:3"],
    ),
    (
        "h {\n a \"b;\n}\n",
        &["unexpected end of file, expecting \";\" or \"}\", \
           is the closing \" missing of the quote that opens in line 2? in F:4"],
    ),
    (
        "h {\n a b;\n",
        &["unexpected end of file, expecting \"}\", \
           is a \"}\" missing for \"h\" in line 1? in F:3"],
    ),
    (
        "h {\n a {\n b;",
        &["unexpected end of file, expecting \"}\", \
           is a \"}\" missing for \"a\" in line 2? in F:3"],
    ),
    (
        "h {\n  s {\n    l {\n      b;\n  }\n  s {\n  }\n}\n",
        &["unexpected end of file, expecting \"}\", \
           is a \"}\" missing for \"l\" in line 3? in F:9"],
    ),
    (
        "h {\n\ts {\n\t\tl\n\t\t{\n\t}\n}\n",
        &["unexpected end of file, expecting \"}\", \
           is a \"}\" missing for \"l\" in line 3? in F:7"],
    ),
    (
        "h { s { l { }\n}\n",
        &["unexpected end of file, expecting \"}\", \
           is a \"}\" missing for \"h\" in line 1? in F:3"],
    ),
    (
        "{ a {\n }\n",
        &[
            "unexpected \"{\" in F:1",
            "unexpected end of file, expecting \"}\", \
             is a \"}\" missing for the \"{\" in line 1? in F:3",
        ],
    ),
    (
        "a;\n;\nb \"c\"d;\n}\ne",
        &[
            "unexpected \";\" in F:2",
            "unexpected \"d\" in F:3",
            "unexpected \"}\" in F:4",
            "unexpected end of file, expecting \";\" or \"}\" in F:5",
        ],
    ),
    (
        "{ a; }\n;",
        &["unexpected \"{\" in F:1", "unexpected \";\" in F:2"],
    ),
    (
        "include;",
        &["invalid number of arguments in \"include\" directive in F:1"],
    ),
    (
        "include a b;",
        &["invalid number of arguments in \"include\" directive in F:1"],
    ),
    (
        "include a\n{}",
        &["directive \"include\" is not terminated by \";\" in F:2"],
    ),
    (
        "\n\ninclude gone;",
        &["open() \"/etc/gone\" failed (2: No such file or directory) in F:3"],
    ),
    ("include main.conf;", &["\"F\" includes itself in F:1"]),
    (
        "include bad;\nd",
        &[
            "unexpected \"}\" in /etc/bad:2",
            "unexpected end of file, expecting \";\" or \"}\" in F:2",
        ],
    ),
    (
        "h {\n include open;\n}\nb;",
        &["unexpected end of file, expecting \"}\", \
           is a \"}\" missing for \"x\" in line 1? in /etc/open:2"],
    ),
];

#[test]
fn every_error_is_reported_with_its_line() {
    let others = [("bad", "a;\n}\nb;"), ("open", "x {\n y;")];
    for (text, expected) in MISTAKES {
        let errors = parse(&files(text.as_bytes(), &others), main_path(), None).unwrap_err();
        let shown: Vec<String> = errors
            .0
            .iter()
            .map(|error| error.to_string().replace(MAIN, "F"))
            .collect();
        assert_eq!(shown, *expected, "{text}");
    }
}

#[test]
fn words_have_nginxs_limit() {
    let x = |count: usize| "x".repeat(count);
    let started =
        |start: &str, line| format!("too long parameter \"{start}...\" started in F:{line}");
    let quote = |quote, line| {
        format!(
            "too long parameter, probably missing terminating \"{quote}\" character in F:{line}"
        )
    };
    let table: Vec<(String, Vec<String>)> = vec![
        (format!("\na {};", x(4095)), vec![]),
        (format!("\na {};", x(4096)), vec![started("xxxxxxxxxx", 2)]),
        (format!("\na {} ;", x(4095)), vec![started("xxxxxxxxxx", 2)]),
        (format!("a '{}';", x(4094)), vec![]),
        (format!("a '{}';", x(4095)), vec![started("xxxxxxxxxx", 1)]),
        (format!("a '{}';", x(4096)), vec![quote('\'', 1)]),
        (
            format!("a\n\"b\n;\n{}\n\n;}}", x(5000)),
            vec![quote('"', 2)],
        ),
        (
            format!("a {};\n;", x(5000)),
            vec![
                started("xxxxxxxxxx", 1),
                "unexpected \";\" in F:2".to_owned(),
            ],
        ),
        (format!("#{}\n", x(4094)), vec![]),
        (format!("#{}\na;", x(4096)), vec![started("#xxxxxxxxx", 1)]),
    ];
    for (text, expected) in table {
        let shown: Vec<String> = match parse(&files(text.as_bytes(), &[]), main_path(), None) {
            Ok(_) => Vec::new(),
            Err(errors) => errors
                .0
                .iter()
                .map(|e| e.to_string().replace(MAIN, "F"))
                .collect(),
        };
        assert_eq!(shown, expected, "{}", &text[..20]);
    }
}

#[test]
fn includes_are_put_in_place() {
    let others = [
        ("one", "b 1; b 2;"),
        ("sites/b.conf", "site b;"),
        ("sites/a.conf", "site a;"),
        ("sites/a-1.conf", "site a-1;"),
        ("sites/.hidden.conf", "site hidden;"),
        ("sites/a.conf~", "site backup;"),
        ("deep/x", "include deep/y;"),
        ("deep/y", "y;"),
        ("bom", "\u{FEFF}z;"),
    ];
    let table: &[(&str, &str)] = &[
        ("a; include one; c;", "<a> <b><1> <b><2> <c>"),
        ("\"include\" /etc/one;", "<b><1> <b><2>"),
        ("h { include 'one'; }", "<h>{<b><1> <b><2>}"),
        ("include sites/*.conf;", "<site><a-1> <site><a> <site><b>"),
        ("include none/*.conf;", ""),
        (
            "include deep/x; include deep/y; include bom;",
            "<y> <y> <z>",
        ),
    ];
    for (text, expected) in table {
        let tree = parse(&files(text.as_bytes(), &others), main_path(), None).unwrap();
        assert_eq!(show(&tree.directives), *expected, "{text}");
    }
}

#[test]
fn include_and_block_depths_are_limited() {
    let names: Vec<String> = (0..=INCLUDE_DEPTH_MAX)
        .map(|depth| format!("f{depth}"))
        .collect();
    let texts: Vec<String> = (0..=INCLUDE_DEPTH_MAX)
        .map(|depth| format!("include f{};", depth + 1))
        .collect();
    let chain: Vec<(&str, &str)> = names
        .iter()
        .map(String::as_str)
        .zip(texts.iter().map(String::as_str))
        .collect();
    let errors = parse(&files(b"include f0;", &chain), main_path(), None).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "includes are nested deeper than 32 in /etc/f31:1"
    );

    let nested = |depth: usize| format!("{}{}", "a{".repeat(depth), "}".repeat(depth));
    let fits = nested(BLOCK_DEPTH_MAX);
    assert!(parse(&files(fits.as_bytes(), &[]), main_path(), None).is_ok());
    let errors = parse(&files(nested(100_000).as_bytes(), &[]), main_path(), None)
        .unwrap_err()
        .to_string();
    assert_eq!(
        errors,
        format!("blocks are nested deeper than 100 in {MAIN}:1")
    );

    let many = ";\n".repeat(100_000);
    let errors = parse(&files(many.as_bytes(), &[]), main_path(), None).unwrap_err();
    assert_eq!(errors.0.len(), ERRORS_MAX);
}

#[test]
fn globals_come_first_and_are_named() {
    let table: &[(&str, Result<&str, &str>)] = &[
        ("", Ok("<main>")),
        ("daemon off; user a;", Ok("<daemon><off> <user><a> <main>")),
        ("include one;", Ok("<one> <main>")),
        (
            "daemon off",
            Err("unexpected end of parameter, expecting \";\" in command line"),
        ),
        ("}", Err("unexpected \"}\" in command line")),
        (
            "h { a; }",
            Err("block directives are not supported in -g option in command line"),
        ),
        (
            "include gone;",
            Err("open() \"/etc/gone\" failed (2: No such file or directory) in command line"),
        ),
    ];
    for (globals, expected) in table {
        let loader = files(b"main;", &[("one", "one;")]);
        let shown = match parse(&loader, main_path(), Some(globals)) {
            Ok(tree) => Ok(show(&tree.directives)),
            Err(errors) => Err(errors.to_string()),
        };
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(shown, expected, "{globals}");
    }
    let long = format!("a {};", "x".repeat(5000));
    assert!(parse(&files(b"", &[]), main_path(), Some(&long)).is_ok());
}

#[test]
fn a_missing_main_file_has_no_place() {
    let error = parse(&files(b"", &[]), "/etc/gone".as_ref(), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "open() \"/etc/gone\" failed (2: No such file or directory)"
    );
}

#[test]
fn places_are_the_lines_nginx_reports() {
    let text = b"a\n b\n c\n ;\nh\n {\n x;\n }\n";
    let tree = parse(&files(text, &[]), main_path(), None).unwrap();
    let at = |line| Span {
        file: FileId(0),
        line,
    };
    let [a, h] = &tree.directives[..] else {
        panic!("two directives")
    };
    assert_eq!(
        (a.name.span, a.arguments[1].span, a.span, a.end),
        (at(1), at(3), at(4), at(4))
    );
    assert_eq!((h.name.span, h.span, h.end), (at(5), at(6), at(8)));
    assert_eq!(
        tree.error(h.end, "it").to_string(),
        "it in /etc/main.conf:8"
    );
}

#[test]
fn bytes_are_kept() {
    let table: &[(&[u8], &str)] = &[
        (b"abc", "abc"),
        ("ü".as_bytes(), "ü"),
        (b"\xFFa\x80", "\u{F7FF}a\u{F780}"),
        (b"\xC3", "\u{F7C3}"),
        ("\u{F7C3}".as_bytes(), "\u{F7EF}\u{F79F}\u{F783}"),
        ("\u{F77F}".as_bytes(), "\u{F77F}"),
    ];
    for (bytes, text) in table {
        assert_eq!(text_of(bytes), *text);
        assert_eq!(bytes_of(text), *bytes);
    }
    let tree = parse(&files(b"a 'b\xFF\\\"';", &[]), main_path(), None).unwrap();
    let word = &tree.directives[0].arguments[0];
    assert!(word.quoted);
    assert_eq!(word.bytes(), b"b\xFF\"");
}

#[test]
fn a_dump_has_every_file_once_and_can_be_parsed_again() {
    let others = [("a/1", "x 1;\n"), ("a/2", "x 2;")];
    let loader = files(b"include a/*; include a/2;", &others);
    let tree = parse(&loader, main_path(), None).unwrap();
    let dump = "# configuration file /etc/main.conf:\ninclude a/*; include a/2;\n\
                # configuration file /etc/a/1:\nx 1;\n\n# configuration file /etc/a/2:\nx 2;\n";
    assert_eq!(String::from_utf8(tree.sources.dump()).unwrap(), dump);
    let again = parse(&tree.sources.to_memory(), main_path(), None).unwrap();
    assert_eq!(again.directives, tree.directives);
    assert_eq!(
        tree.sources.to_memory().read("/etc/a/2".as_ref()).unwrap(),
        b"x 2;"
    );
}
