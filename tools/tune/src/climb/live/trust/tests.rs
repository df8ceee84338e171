use super::*;

#[test]
fn a_process_is_roots_if_all_its_users_are() {
    let cases = [
        (
            "Name:\tnginx\nUid:\t0\t0\t0\t0\nGid:\t33\t33\t33\t33\n",
            true,
        ),
        ("Uid:\t33\t33\t33\t33\nGid:\t0\t0\t0\t0\n", false),
        // passwd(1), as a user runs it.
        ("Uid:\t1000\t0\t0\t0\n", false),
        ("Uid:\t0\t33\t0\t33\n", false),
        ("Uid:\n", false),
        ("", false),
    ];
    for (status, expected) in cases {
        assert_eq!(is_roots(status), expected, "{status}");
    }
}

#[test]
fn a_program_is_roots_if_nobody_else_can_put_another_in_its_place() {
    let root = (0, 0, 0o755);
    let cases = [
        // "/", "/srv", "/srv/nginx": user, group and mode.
        ([root, root, root], None),
        ([root, root, (0, 33, 0o750)], None),
        // The group of root, and a shared folder such as /tmp.
        ([root, (0, 0, 0o775), (0, 0, 0o775)], None),
        ([root, (0, 0, 0o1777), root], None),
        ([root, root, (33, 0, 0o755)], Some("/srv/nginx")),
        ([root, root, (0, 33, 0o775)], Some("/srv/nginx")),
        ([root, root, (0, 0, 0o757)], Some("/srv/nginx")),
        // The sticky bit of a file means nothing.
        ([root, root, (0, 0, 0o1757)], Some("/srv/nginx")),
        ([root, (33, 0, 0o755), root], Some("/srv")),
        ([root, (33, 0, 0o1755), root], Some("/srv")),
        ([root, (0, 33, 0o775), root], Some("/srv")),
        ([root, (0, 0, 0o777), root], Some("/srv")),
        ([(0, 0, 0o777), root, root], Some("/")),
    ];
    for (rights, expected) in cases {
        let checked = check_path(Path::new("/srv/nginx"), |path| {
            let (user, group, mode) = rights[path.components().count() - 1];
            Ok(Rights { user, group, mode })
        });
        let expected = expected.map_or(Ok(()), |path| {
            Err(format!(
                "/srv/nginx is not run by root, since others than root can change {path}"
            ))
        });
        assert_eq!(checked, expected, "{rights:?}");
    }
}
