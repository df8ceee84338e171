use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::conditions::Conditions;
use super::handler::elements;
use super::if_field::{self, shown_tokens};
use super::job::{Job, Source};
use super::listing::Listing;
use super::locks::{Change, Lock, LockZone, NoLock};
use super::place::Place;
use super::request_xml::{DAV, LockInfo, Malformed, Name, PropertySelection, lock_info, propfind};

#[test]
fn elements_of_paths_are_counted() {
    for (path, count) in [("/", 0), ("/a", 1), ("/a/", 1), ("/a/b", 2), ("//a", 1)] {
        assert_eq!(elements(path.as_bytes()), count, "{path}");
    }
}

fn copy(folder: &Path, from: &str, to: &str) -> Result<u16, u16> {
    let job = Job::Transfer {
        source: Source {
            place: Place::new(folder.join(from)),
            is_folder: true,
        },
        destination: Place::new(folder.join(to)),
        overwrites: true,
        is_move: false,
        is_whole: true,
    };
    job.run(&Conditions::default())
        .map_err(|failure| failure.status)
}

#[test]
fn folders_are_copied_with_all_that_is_in_them_and_nothing_else() {
    let folder = std::env::temp_dir().join(format!("turnpike-dav-{}", std::process::id()));
    let inner = folder.join("a/b");
    fs::create_dir_all(&inner).expect("a folder");
    fs::write(inner.join("file"), "text").expect("a file");
    symlink("../..", inner.join("link")).expect("a link");
    assert_eq!(copy(&folder, "a", "c"), Ok(201));
    assert_eq!(fs::read(folder.join("c/b/file")).expect("a copy"), b"text");
    let link = fs::read_link(folder.join("c/b/link")).expect("a link");
    assert_eq!(link, Path::new("../.."));
    // Neither into itself nor over what it is in, and over another as a whole.
    assert_eq!(copy(&folder, "a", "a/b/d"), Err(409));
    assert_eq!(copy(&folder, "a/b", "a"), Err(409));
    assert_eq!(copy(&folder, "a/b", "c"), Ok(201));
    assert!(!folder.join("c/b").exists() && folder.join("c/file").exists());
    // A link is what leads back here: the copy ends all the same.
    symlink(&folder, folder.join("back")).expect("a link");
    assert_eq!(copy(&folder, "a", "back/a/e"), Ok(201));
    assert!(folder.join("a/e/b/file").exists() && !folder.join("a/e/e").exists());
    fs::remove_dir_all(&folder).expect("removed");
}

fn these(names: &[(&[u8], &str)]) -> Result<PropertySelection, Malformed> {
    let name = |(namespace, local): &(&[u8], &str)| Name {
        namespace: namespace.to_vec(),
        local: local.as_bytes().to_vec(),
    };
    Ok(PropertySelection::These(names.iter().map(name).collect()))
}

#[test]
fn what_is_asked_of_properties_is_read() {
    for (body, expected) in [
        ("", Ok(PropertySelection::All)),
        (
            "<propfind xmlns='DAV:'><allprop/></propfind>",
            Ok(PropertySelection::All),
        ),
        (
            "<?xml version='1.0'?><D:propfind xmlns:D=\"DAV:\"><D:propname/></D:propfind>",
            Ok(PropertySelection::Names),
        ),
        (
            "<a:propfind xmlns:a='DAV:'><a:prop><a:getetag></a:getetag><b xmlns='x'/></a:prop>\
             </a:propfind>",
            these(&[(DAV, "getetag"), (b"x", "b")]),
        ),
        // What is in a property asks for nothing.
        (
            "<propfind xmlns='DAV:'><prop><a><b/></a></prop></propfind>",
            these(&[(DAV, "a")]),
        ),
        ("<propfind xmlns='DAV:'><prop/></propfind>", these(&[])),
        ("<propfind xmlns='other'><prop/></propfind>", Err(Malformed)),
        ("<propfind xmlns='DAV:'/>", Err(Malformed)),
        ("<propfind xmlns='DAV:'><prop>", Err(Malformed)),
        ("<p:propfind><p:prop/></p:propfind>", Err(Malformed)),
        (
            "<propfind xmlns='DAV:'><prop/></propfind><a/>",
            Err(Malformed),
        ),
        (
            "<!DOCTYPE a [<!ENTITY b 'c'>]><propfind xmlns='DAV:'><prop/></propfind>",
            Err(Malformed),
        ),
        ("text", Err(Malformed)),
        ("\0", Err(Malformed)),
    ] {
        assert_eq!(propfind(body.as_bytes()), expected, "{body}");
    }
    for (count, is_taken) in [(64, true), (65, false)] {
        let names = "<a/>".repeat(count);
        let body = format!("<propfind xmlns='DAV:'><prop>{names}</prop></propfind>");
        assert_eq!(propfind(body.as_bytes()).is_ok(), is_taken, "{count}");
    }
    let deep = format!("<propfind xmlns='DAV:'><allprop/>{}", "<a>".repeat(100));
    assert_eq!(propfind(deep.as_bytes()), Err(Malformed));
}

#[test]
fn namespaces_and_answers_have_an_end() {
    for (bytes, is_taken) in [(256, true), (257, false)] {
        let namespace = "n".repeat(bytes);
        let body =
            format!("<propfind xmlns='DAV:'><prop><a xmlns='{namespace}'/></prop></propfind>");
        assert_eq!(propfind(body.as_bytes()).is_ok(), is_taken, "{bytes}");
    }
    let name = format!("turnpike-dav-listing-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a folder");
    // Each has 64 times 256 bytes and more.
    for (count, expected) in [(100, None), (2_200, Some(507))] {
        for index in 0..count {
            fs::write(folder.join(index.to_string()), "").expect("a file");
        }
        let name = Name {
            namespace: vec![b'n'; 256],
            local: b"a".to_vec(),
        };
        let listing = Listing {
            place: Place::new(folder.clone()),
            conditions: Conditions::default(),
            path: b"/".to_vec(),
            with_entries: true,
            asked: PropertySelection::These(vec![name; 64]),
            locks: None,
            now_ms: 0,
        };
        let status = listing.run().err().map(|failure| failure.status);
        assert_eq!(status, expected, "{count}");
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn what_is_asked_of_locks_is_read() {
    let write = "<locktype><write/></locktype>";
    let exclusive = "<lockscope><exclusive/></lockscope>";
    for (content, expected) in [
        (format!("{write}{exclusive}"), Ok((true, ""))),
        (
            format!("{write}{exclusive}<owner><href>http://a/</href></owner>"),
            Ok((true, "<D:href>http://a/</D:href>")),
        ),
        (
            format!("{exclusive}{write}<owner> A &lt; B </owner>"),
            Ok((true, "AB")),
        ),
        (
            format!("{write}<lockscope><shared/></lockscope>"),
            Ok((false, "")),
        ),
        (
            format!("<owner>{}</owner>", "x".repeat(1025)),
            Err(Malformed),
        ),
        ("</owner>".to_owned(), Err(Malformed)),
    ] {
        let body = format!("<lockinfo xmlns='DAV:'>{content}</lockinfo>");
        let expected = expected.map(|(is_exclusive, owner)| LockInfo {
            is_exclusive,
            owner: owner.as_bytes().to_vec(),
        });
        assert_eq!(lock_info(body.as_bytes()), expected, "{content}");
    }
}

#[test]
fn owners_are_text_that_xml_can_have() {
    for (owner, is_taken) in [
        (&b"\tJ\xc3\xb6rg\r\n"[..], true),
        (b"<![CDATA[J\xc3\xb6rg]]>", true),
        (b"\x01", false),
        (b"\xff", false),
        (b"\xef\xbf\xbf", false),
        (b"<![CDATA[\x01]]>", false),
        (b"<![CDATA[\x00]]>", false),
        (b"<![CDATA[\xff]]>", false),
        (b"<href><![CDATA[\x1b]]></href>", false),
    ] {
        let (begin, end) = (b"<lockinfo xmlns='DAV:'><owner>", b"</owner></lockinfo>");
        let body = [&begin[..], owner, end].concat();
        let shown = owner.escape_ascii();
        assert_eq!(lock_info(&body).is_ok(), is_taken, "{shown}");
    }
}

#[test]
fn shown_tokens_are_those_of_lists() {
    for (field, expected) in [
        ("(<urn:a>)", &["urn:a"][..]),
        (
            "<http://h/p> (<urn:a> [\"etag\"]) (Not <urn:b> <urn:c>)",
            &["urn:a", "urn:c"],
        ),
        ("(<urn:a", &["urn:a"]),
        ("<urn:a>", &[]),
        ("([\"<urn:a>\"])", &[]),
        ("", &[]),
    ] {
        let found = shown_tokens(field.as_bytes());
        let found: Vec<&str> = found
            .iter()
            .flat_map(|token| str::from_utf8(token))
            .collect();
        assert_eq!(found, expected, "{field}");
    }
    for (count, expected) in [(64, 64), (65, 64), (1000, 64)] {
        let field = "(<a>)".repeat(count);
        assert_eq!(shown_tokens(field.as_bytes()).len(), expected, "{count}");
    }
}

fn lock(token: &str, is_deep: bool, until_ms: u64) -> Lock {
    Lock {
        token: token.to_owned(),
        root: Vec::new(),
        is_deep,
        owner: Vec::new(),
        client: token.as_bytes().to_vec(),
        until_ms,
    }
}

#[test]
fn lists_of_conditions_are_read() {
    let show = |field: &str| -> Option<String> {
        let lists = if_field::lists(field.as_bytes())?;
        let lists = lists.iter().map(|(resource, conditions)| {
            let resource = resource.map_or("-", |text| str::from_utf8(text).expect("text"));
            let conditions = conditions.iter().map(|condition| {
                let (mark, text) = match &condition.state {
                    if_field::State::Token(text) => ('<', text),
                    if_field::State::Tag(text) => ('[', text),
                };
                let not = if condition.is_negated { "!" } else { "" };
                format!("{not}{mark}{}", str::from_utf8(text).expect("text"))
            });
            format!("{resource}: {}", conditions.collect::<Vec<_>>().join(" "))
        });
        Some(lists.collect::<Vec<_>>().join("; "))
    };
    for (field, expected) in [
        ("(<urn:a>)", Some("-: <urn:a")),
        ("([\"a\"] not<urn:b>)", Some("-: [\"a\" !<urn:b")),
        ("(<a>)(Not [W/\"b\"])", Some("-: <a; -: ![W/\"b\"")),
        (
            "</p> (<a>) (<b>) <http://h/q> (<c>)",
            Some("/p: <a; /p: <b; http://h/q: <c"),
        ),
        ("(<a>), (<b>)", Some("-: <a; -: <b")),
        // What is malformed holds for nothing.
        ("", None),
        ("()", None),
        ("<a>", None),
        ("(<a>", None),
        ("(<a", None),
        ("<a>)", None),
        ("((<a>))", None),
        ("(Not)", None),
        ("(Not Not <a>)", None),
        ("Not (<a>)", None),
        ("(<a>) </p> (<b>)", None),
        ("(a)", None),
    ] {
        assert_eq!(show(field).as_deref(), expected, "{field}");
    }
    for (count, is_taken) in [(64, true), (65, false)] {
        let field = "(<a>)".repeat(count);
        assert_eq!(
            if_field::lists(field.as_bytes()).is_some(),
            is_taken,
            "{count}"
        );
    }
}

#[test]
fn locks_keep_others_out_until_they_end() {
    use Change::{Added, Content, Removed};
    let zone = LockZone::new(100_000, 50);
    assert_eq!(zone.lock("/a/deep", lock("deep", true, 100), 0), Ok(()));
    assert_eq!(zone.lock("/a/flat", lock("flat", false, 100), 0), Ok(()));
    for (path, is_deep) in [("/a/deep", false), ("/a/deep/x", false), ("/a", true)] {
        let taken = zone.lock(path, lock("other", is_deep, 100), 0);
        assert_eq!(taken, Err(NoLock::Taken), "{path}");
    }
    for (path, change, needs) in [
        ("/a/deep", Content, "deep"),
        ("/a/deep/x/y", Content, "deep"),
        ("/a//deep", Content, "deep"),
        ("/a/./deep/", Content, "deep"),
        ("/a//flat/./x", Added, "flat"),
        ("/a/deeper", Content, ""),
        ("/a/flat/x", Content, ""),
        ("/a/flat/x", Added, "flat"),
        ("/a/flat", Removed, "flat"),
        ("/a/flat/x", Removed, "flat"),
        ("/b", Removed, ""),
    ] {
        let allows = |tokens: &[Vec<u8>]| zone.allows(path, change, tokens, 99);
        assert_eq!(allows(&[]), needs.is_empty(), "{path} {change:?}");
        assert!(allows(&[needs.as_bytes().to_vec()]), "{path} {change:?}");
    }
    let both = [b"deep".to_vec(), b"flat".to_vec()];
    assert!(!zone.allows("/a", Removed, &both[..1], 99));
    assert!(zone.allows("/a", Removed, &both, 99));
    // One is refreshed, the other one ends.
    assert!(zone.refresh("/a/deep/x", &both[1..], 90).is_none());
    assert!(zone.refresh("/a/deep/x", &both[..1], 90).is_some());
    assert!(zone.allows("/a/flat", Content, &[], 100));
    assert!(!zone.allows("/a/deep", Content, &[], 139));
    assert!(!zone.unlock("/a/deep", b"flat", 100) && zone.unlock("/a/deep", b"deep", 100));
    assert!(zone.allows("/a", Removed, &[], 100));
}

#[test]
fn a_full_zone_takes_a_lock_where_another_one_has_ended() {
    let zone = LockZone::new(406, 50);
    assert_eq!(zone.lock("/a", lock("a", true, 100), 0), Ok(()));
    assert_eq!(zone.lock("/b", lock("b", true, 100), 0), Ok(()));
    assert_eq!(zone.lock("/c", lock("c", true, 100), 99), Err(NoLock::Full));
    assert_eq!(zone.lock("/c", lock("c", true, 200), 100), Ok(()));
    // The ended ones have gone with their tokens, whatever the time.
    assert!(!zone.is_held(b"a", "/a", 0) && !zone.is_held(b"b", "/b", 0));
    assert!(zone.is_held(b"c", "/c", 100));
    // What was locked is gone.
    zone.removed("/c");
    assert!(!zone.is_held(b"c", "/c", 100));
    assert_eq!(zone.lock("/d", lock("d", true, 200), 100), Ok(()));
    assert_eq!(zone.lock("/e", lock("e", true, 200), 100), Ok(()));
}

#[test]
fn one_client_cannot_fill_a_zone() {
    let zone = LockZone::new(16_000, 50);
    let by = |client: &str, number: usize, until_ms| Lock {
        client: client.as_bytes().to_vec(),
        ..lock(&format!("{client}-{number}"), true, until_ms)
    };
    let fill = |client: &str, until_ms, now_ms| {
        let taken = |number: &usize| {
            let path = format!("/{client}/{number}");
            zone.lock(path, by(client, *number, until_ms), now_ms) == Ok(())
        };
        (0..1000).take_while(taken).count()
    };
    let share = fill("a", 100, 0);
    assert!((10..=20).contains(&share), "{share}");
    let refused = zone.lock("/a/more", by("a", 1000, 100), 0);
    assert_eq!(refused, Err(NoLock::Share));
    // Others have their own share, until there is nothing left.
    for client in ["b", "c", "d"] {
        assert_eq!(fill(client, 100, 0), share, "{client}");
    }
    // A lock that is given back, and those that have ended, make room.
    assert!(zone.unlock("/a/0", b"a-0", 50));
    assert_eq!(zone.lock("/a/0", by("a", 2000, 100), 50), Ok(()));
    assert_eq!(fill("a", 200, 100), share);
}
