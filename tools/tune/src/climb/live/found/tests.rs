use super::*;

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
