//! Tests of variables and templates with a subject that is not a request.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::template::Template;

/// A session of a test protocol.
struct Session {
    table: VariableTable<Session>,
    values: RefCell<Values>,
    port: u16,
    logged: RefCell<Vec<String>>,
}

impl Subject for Session {
    fn variables(&self) -> &VariableTable<Self> {
        &self.table
    }

    fn values(&self) -> &RefCell<Values> {
        &self.values
    }

    fn group(&self, number: usize, take: &mut dyn FnMut(&[u8])) {
        if number == 1 {
            take(b"a&b");
        }
    }

    fn capture(&self, _: &Regex, _: &[u8]) -> Result<bool, Undecided> {
        Ok(false)
    }

    fn match_failures(&self) -> u32 {
        0
    }

    fn is_undecided(&self) -> bool {
        false
    }

    fn log(&self, _: Level, message: fmt::Arguments<'_>) {
        self.logged.borrow_mut().push(message.to_string());
    }
}

const ROWS: &[VariableRow<Session>] = &[VariableRow {
    name: "port",
    get: |session, out| {
        out.extend_from_slice(session.port.to_string().as_bytes());
        true
    },
    set: Some(|session, value| {
        session.port = std::str::from_utf8(value).unwrap().parse().unwrap();
    }),
    summary: "The port.",
}];

const PREFIXES: &[PrefixRow<Session>] = &[PrefixRow {
    prefix: "upper_",
    get: |_, rest, out| {
        out.extend(rest.to_ascii_uppercase());
        true
    },
}];

/// The value of a template, twice.
struct Twice(Template);

impl Evaluate<Session> for Twice {
    fn evaluate(&self, session: &Session, out: &mut Vec<u8>) -> bool {
        self.0.evaluate(session, out);
        self.0.evaluate(session, out);
        true
    }

    fn sources(&self) -> Sources {
        Sources::of([&self.0])
    }
}

/// The port, counted from 1000.
struct Offset;

impl Evaluate<Session> for Offset {
    fn evaluate(&self, session: &Session, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice((session.port - 1000).to_string().as_bytes());
        true
    }
}

impl Assign<Session> for Offset {
    fn assign(&self, session: &mut Session, value: &[u8]) {
        let offset: u16 = std::str::from_utf8(value).unwrap().parse().unwrap();
        session.port = 1000 + offset;
    }
}

fn session(build: impl FnOnce(&mut VariableTable<Session>)) -> Session {
    let mut table = VariableTable::new(ROWS.iter().copied(), PREFIXES);
    build(&mut table);
    Session {
        table,
        values: RefCell::default(),
        port: 80,
        logged: RefCell::default(),
    }
}

#[test]
fn templates_have_the_values_of_their_subject() {
    for (text, expected) in [
        ("no variable", "no variable"),
        ("at $port.", "at 80."),
        ("${port}1", "801"),
        ("$upper_name", "NAME"),
        ("<$1>", "<a&b>"),
        ("<$2>", "<>"),
        ("$twice", "8080"),
        ("$nothing", ""),
    ] {
        let mut template = None;
        let session = session(|table| {
            let inner = Template::compile(b"$port", table).unwrap();
            let twice = Arc::new(Twice(inner));
            table.define_computed("twice", twice).unwrap();
            template = Some(Template::compile(text.as_bytes(), table).unwrap());
        });
        let value = template.unwrap().value(&session);
        assert_eq!(String::from_utf8(value).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_computed_value_is_kept_and_a_stored_one_overrides_it() {
    let mut template = None;
    let mut session = session(|table| {
        let inner = Template::compile(b"$port", table).unwrap();
        table
            .define_computed("twice", Arc::new(Twice(inner)))
            .unwrap();
        template = Some(Template::compile(b"$twice", table).unwrap());
    });
    let template = template.unwrap();
    assert_eq!(template.value(&session), b"8080");
    let port = session.table.reference("port");
    let assignment = session.table.assignment(port).unwrap();
    assignment.make(&mut session, b"81");
    assert_eq!(template.value(&session), b"8080");
    session.values.borrow_mut().clear();
    assert_eq!(template.value(&session), b"8181");
    let twice = session.table.reference("twice");
    assert!(session.table.assignment(twice).is_none());
    session.values.borrow_mut().store(twice, Some(b"set"));
    assert_eq!(template.value(&session), b"set");
}

#[test]
fn a_variable_may_take_itself_what_set_gives_it() {
    let mut template = None;
    let mut session = session(|table| {
        table.define_assigned("offset", Arc::new(Offset)).unwrap();
        // `set` finds it there.
        table.define_stored("offset").unwrap();
        template = Some(Template::compile(b"$offset $port", table).unwrap());
    });
    let offset = session.table.reference("offset");
    for (given, expected) in [(&b"7"[..], &b"7 1007"[..]), (b"8", b"8 1008")] {
        let assignment = session.table.assignment(offset).unwrap();
        assignment.make(&mut session, given);
        assert_eq!(template.as_ref().unwrap().value(&session), expected);
    }
}

#[test]
fn a_cycle_ends_and_is_logged() {
    let mut template = None;
    let session = session(|table| {
        let inner = Template::compile(b"$loop", table).unwrap();
        table
            .define_computed("loop", Arc::new(Twice(inner)))
            .unwrap();
        template = Some(Template::compile(b"$loop", table).unwrap());
    });
    assert_eq!(template.unwrap().value(&session), b"");
    let logged = session.logged.borrow();
    let line = "cycle while evaluating variable \"loop\"";
    assert!(logged.iter().all(|own| own == line) && !logged.is_empty());
}

#[test]
fn a_variable_is_needed_if_it_is_named_or_may_be_named_later() {
    let named = session(|table| {
        Template::compile(b"$PORT", table).unwrap();
    });
    let later = session(VariableTable::names_come_later);
    let cases = [(session(|_| {}), false), (named, true), (later, true)];
    for (session, expected) in cases {
        assert_eq!(session.table.may_need("port"), expected);
    }
}

/// Texts, and whether they may be made from `$port`.
const UNSETTLED: &[(&str, bool)] = &[
    ("$port", true),
    ("a${port}b", true),
    ("$twice", true),
    ("$set_of_port", true),
    ("$captured", true),
    ("$1", true),
    ("$set_of_upper", false),
    ("$upper_port", false),
    ("port", false),
    ("", false),
];

#[test]
fn what_a_value_may_be_made_from_is_found_by_any_way() {
    for (text, expected) in UNSETTLED {
        let mut template = None;
        let session = session(|table| {
            table.add_unsettled(&["port"]);
            let port = Template::compile(b"$port", table).unwrap();
            let upper = Template::compile(b"$upper_a", table).unwrap();
            let twice = Arc::new(Twice(port.clone()));
            table.define_computed("twice", twice).unwrap();
            for (name, value) in [("set_of_port", &port), ("set_of_upper", &upper)] {
                let unset = Arc::new(Twice(Template::literal(b"")));
                let id = table.define_settable(name, unset).unwrap();
                table.stores(id, Sources::of([value]));
                // A variable that depends on itself.
                table.stores(id, Sources::Named(vec![id]));
            }
            table.define_stored("captured").unwrap();
            template = Some(Template::compile(text.as_bytes(), table).unwrap());
        });
        let sources = Sources::of(&template);
        assert_eq!(
            session.table.may_be_unsettled(&sources),
            *expected,
            "{text}"
        );
    }
    let mut table = VariableTable::<Session>::new(ROWS.iter().copied(), PREFIXES);
    table.add_unsettled(&["port"]);
    assert!(
        !table.may_be_unsettled(&Sources::Unknown),
        "nobody names it"
    );
}
