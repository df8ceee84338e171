use super::*;

#[test]
fn options_are_read_as_the_server_reads_them() {
    let cases = [
        // Words as the kernel has them.
        (
            "nginx\0-c\0/etc/n.conf\0-p\0/srv\0",
            'c',
            Some("/etc/n.conf"),
        ),
        ("nginx\0-p/srv\0-qc/srv/my site/n.conf\0", 'p', Some("/srv")),
        (
            "nginx\0-p/srv\0-qc/srv/my site/n.conf\0",
            'c',
            Some("/srv/my site/n.conf"),
        ),
        (
            "turnpike: master process turnpike\0-c\0a b\0",
            'c',
            Some("a b"),
        ),
        ("nginx\0-g\0-c x;\0-e\0-p\0", 'c', None),
        ("nginx\0-g\0-c x;\0-e\0-p\0", 'p', None),
        ("nginx\0-c\0one\0-c\0two\0", 'c', Some("two")),
        ("nginx\0--prefix=/x\0-xp\0/y\0", 'p', None),
        ("turnpike\0-c\0", 'c', None),
        ("-c\0-p\0/srv\0", 'p', Some("/srv")),
        // A title: its values end where the next option begins.
        ("nginx: master process nginx -p/srv -c x", 'p', Some("/srv")),
        (
            "nginx: master process nginx -p /srv/my site -c x\0\0\0",
            'p',
            Some("/srv/my site"),
        ),
        (
            "nginx: master process nginx -p /srv/my site -c x\0\0\0",
            'c',
            Some("x"),
        ),
        (
            "nginx: master process /usr/sbin/nginx -g daemon off;",
            'c',
            None,
        ),
        ("nginx: master process nginx -g a -px; b c; -c y", 'p', None),
        (
            "nginx: master process nginx -g a -px; b c; -c y",
            'c',
            Some("y"),
        ),
        ("nginx: master process nginx -c -x", 'c', Some("-x")),
        ("", 'c', None),
    ];
    for (bytes, letter, expected) in cases {
        let words = Words::read(bytes.as_bytes());
        assert_eq!(
            words.option(letter).as_deref(),
            expected,
            "{letter} of {bytes:?}"
        );
    }
}
