use super::*;

#[test]
fn options_are_found_in_words_and_titles() {
    let cases = [
        ("nginx -c /etc/n.conf -p /srv", "-c", Some("/etc/n.conf")),
        (
            "nginx: master process nginx -p/srv -c x",
            "-p",
            Some("/srv"),
        ),
        (
            "nginx: master process /usr/sbin/nginx -g daemon off;",
            "-c",
            None,
        ),
        ("turnpike -c", "-c", None),
    ];
    for (text, name, expected) in cases {
        let words: Vec<String> = text.split(' ').map(ToOwned::to_owned).collect();
        assert_eq!(option(&words, name).as_deref(), expected, "{text}");
    }
}

#[test]
fn a_test_names_its_configuration() {
    let cases = [
        (
            "nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\nnginx: ...",
            Some("/etc/nginx/nginx.conf"),
        ),
        ("nginx: [emerg] unknown directive", None),
    ];
    for (said, expected) in cases {
        assert_eq!(tested(said).as_deref(), expected.map(Path::new), "{said}");
    }
}
