//! Values of environment variables in words.

use std::path::Path;

use crate::environment::path;
use crate::parse::parse;
use crate::source::MemoryLoader;
use crate::tree::Tree;

const VALUES: &[(&str, &str)] = &[
    ("HOST", "a.example"),
    ("PORT", "81"),
    ("TRICK", "x; } evil {"),
    ("EMPTY", ""),
    ("DOLLAR", "a$host"),
    ("LINE", "a\nb"),
];

fn read(text: &str) -> Result<Tree, String> {
    let mut loader = MemoryLoader::default();
    loader.0.insert("/n.conf".into(), text.into());
    for (name, value) in VALUES {
        loader.0.insert(path(name), (*value).into());
    }
    parse(&loader, Path::new("/n.conf"), None).map_err(|errors| errors.to_string())
}

/// The words of a directive's arguments.
fn words(tree: &Tree, at: usize) -> Vec<&str> {
    let arguments = tree.directives[at].arguments.iter();
    arguments.map(|word| word.text.as_str()).collect()
}

/// A directive, and the arguments that it has.
const EXPANDED: &[(&str, &[&str])] = &[
    ("a ${HOST};", &["a.example"]),
    ("a http://${HOST}:${PORT}/x;", &["http://a.example:81/x"]),
    ("a \"${HOST} b\" c;", &["a.example b", "c"]),
    // A value is no syntax.
    ("a ${TRICK} b;", &["x; } evil {", "b"]),
    ("a x${EMPTY}y;", &["xy"]),
    // A name that is not allowed may be a variable.
    (
        "a ${host} ${OTHER} $HOST2;",
        &["${host}", "${OTHER}", "$HOST2"],
    ),
    ("a ${HOST;", &["${HOST"]),
];

#[test]
fn values_take_the_place_of_names_inside_words() {
    for (text, expected) in EXPANDED {
        let tree = read(&format!("{text}\nenv_subst HOST PORT TRICK EMPTY;"));
        let tree = tree.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(words(&tree, 0), *expected, "{text}");
        // What is shown of the file is what was written, and another process reads the same.
        assert!(!String::from_utf8_lossy(&tree.sources.dump()).contains("a.example"));
        let again: MemoryLoader = tree.texts().collect();
        let again = parse(&again, Path::new("/n.conf"), None);
        let again = again.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(again.directives, tree.directives, "{text}");
        assert!(!format!("{:?}", tree.values).contains("81"), "{text}");
    }
    let tree = read("a ${HOST};").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(words(&tree, 0), ["${HOST}"]);
}

const REFUSED: &[(&str, &str)] = &[
    (
        "env_subst NONE;",
        "environment variable \"NONE\" is not set in /n.conf:1",
    ),
    (
        "env_subst 1A;",
        "\"1A\" is not a name that an environment variable can have: use letters, digits and \
         underscores in /n.conf:1",
    ),
    (
        "env_subst a-b;",
        "\"a-b\" is not a name that an environment variable can have: use letters, digits and \
         underscores in /n.conf:1",
    ),
    (
        "set $host b;\nenv_subst HOST;",
        "\"HOST\" is also a variable of this configuration, in upper or lower case: give the \
         environment variable another name in /n.conf:2",
    ),
    (
        "location \"~ ^/(?<Host>a)\" { }\nenv_subst HOST;",
        "\"HOST\" is also a variable of this configuration, in upper or lower case: give the \
         environment variable another name in /n.conf:2",
    ),
    (
        "env_subst PORT;\nmap $a $b { ${PORT} 1; }",
        "environment variable \"PORT\" has no effect at the beginning of a directive: values are \
         put into arguments in /n.conf:2",
    ),
    (
        "env_subst HOST;\ninclude ${HOST}/*.conf;",
        "environment variable \"HOST\" has no effect in \"include\": files are read before \
         values are known in /n.conf:2",
    ),
    (
        "env_subst DOLLAR;",
        "the value of environment variable \"DOLLAR\" has a \"$\" or a control character, which \
         cannot be put into a configuration in /n.conf:1",
    ),
    (
        "env_subst LINE;",
        "the value of environment variable \"LINE\" has a \"$\" or a control character, which \
         cannot be put into a configuration in /n.conf:1",
    ),
];

#[test]
fn values_that_cannot_be_put_in_are_refused_by_name() {
    for (text, expected) in REFUSED {
        assert_eq!(read(text).map(drop), Err((*expected).to_owned()), "{text}");
    }
}
