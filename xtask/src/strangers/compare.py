"""compare.py TURNPIKE NGINX FOLDER [ID...]: do both servers answer alike?

Each subfolder of FOLDER has a configuration tree (etc/nginx/...) and meta.json: `conf`, the file
that is loaded, and what this machine lacks for it: `hosts`, `users`, `files` that are read. Each
runs on an overlay of this machine's root, in namespaces of its own, with certificates, folders and
pages made up. Both servers get the same requests. Differences are printed as a table; the last
line counts the configurations. Root is needed.
"""

import collections
import glob
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import zlib

CONF = "/etc/nginx"
REQUESTS = 30
PATIENCE_S = 10
# What differs from run to run, or by the version that is asked for.
UNLIKE = {"date", "expires", "server", "x-request-id", "request-id", "x-runtime", "x-response-time"}
LINE = re.compile(r"(?:^|(?<=[;{]))\s*([a-z0-9_]+)\s+([^;{}]+);", re.M)
NO_FILES = ("data:", "engine:", "syslog:", "unix:")
VERSION = re.compile(rb"nginx/[0-9.]+")
STUB_STATUS = b"Active connections: "
# Connections so far, which depend on how often a server was looked for; the last line is only in
# builds for tests.
COUNTS = re.compile(rb"\d+|allocations \d+\n$")
# Other limits than anybody writes, an odd one too, since a request that is passed on takes two.
CONNECTIONS = (300, 307, 310)
EXTRA_PATHS = ["/", "/index.html", "/nothing/here", "/a%20b/../index.html", "//index.html", "/.ht"]


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, **more)


def words(text):
    """The tokens of a configuration; braces and semicolons stand alone."""
    token = re.compile(r"""\s+|\#[^\n]*|"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([{};])|"""
                       r"""((?:\\.|\$\{[^}]*\}|[^\s{};"'\\])(?:\\.|\$\{[^}]*\}|[^\s{};\\])*)""",
                       re.S)
    for found in token.finditer(text):
        if found.lastindex:
            yield found.group(found.lastindex), found.lastindex == 3


def blocks(tokens):
    """Directives as [words, children or None]."""
    found, line = [], []
    for word, is_mark in tokens:
        if is_mark and word == "}":
            break
        if is_mark and word == ";":
            found.append([line, None])
            line = []
        elif is_mark:
            found.append([line, blocks(tokens)])
            line = []
        else:
            line.append(word)
    return found


def named(level, name):
    return [one for one in level if one[0] and one[0][0] == name]


def addresses(server):
    """Ports of TCP on this machine, and whether they use TLS."""
    for (line, _) in named(server, "listen") or [(["listen", "80"], None)]:
        place = line[1] if len(line) > 1 else "80"
        if place.startswith("unix:") or "quic" in line or "proxy_protocol" in line:
            continue
        port = place.rsplit(":", 1)[-1].strip("[]")
        if not port.isdigit():
            port = "443" if "ssl" in line else "80"
        old = [line for (line, _) in named(server, "ssl")]
        yield int(port), "ssl" in line or any(line[1:] == ["on"] for line in old)


def locations(level):
    for (line, inner) in named(level, "location"):
        path = line[-1] if len(line) > 1 else "/"
        if inner is None or line[1:2] in (["~"], ["~*"]) or path.startswith(("@", "~")):
            path = "/page.php" if "php" in path else "/a.css"
        path = path.lstrip("=^") or "/"
        yield path if path.startswith("/") else "/" + path
        yield from locations(inner or [])


def requests(tree):
    """What is asked: port, TLS, host, method, path and fields."""
    asked = []
    # Files that are included stand beside the main one.
    for level in [tree, *(level for (_, level) in named(tree, "http"))]:
        for server in [server for (_, server) in named(level, "server") if server is not None]:
            names = [name for (line, _) in named(server, "server_name") for name in line[1:]]
            hosts = [name.lstrip(".") for name in names if re.fullmatch(r"[\w.-]*[\w-]", name)]
            host = hosts[0] if hosts else "localhost"
            paths = list(dict.fromkeys([*locations(server), *EXTRA_PATHS]))
            for (port, tls) in addresses(server):
                asked += [(port, tls, host, "GET", path, {}) for path in paths]
                asked += [(port, tls, host, "HEAD", "/", {}),
                          (port, tls, "other.example", "GET", "/", {}),
                          (port, tls, host, "POST", paths[0], {"Content-Type": "text/plain"}),
                          (port, tls, host, "OPTIONS", "/", {"Origin": "http://a.example"}),
                          (port, tls, host, "GET", "/index.html", {"Accept-Encoding": "gzip"}),
                          (port, tls, host, "GET", "/index.html", {"Range": "bytes=2-5"})]
    # Some of each server, where there are more than are sent.
    step = max(1, -(-len(asked) // REQUESTS))
    return [one for start in range(step) for one in asked[start::step]][:REQUESTS]


def ask(port, tls, host, method, path, fields):
    try:
        plain = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        if tls:
            context = ssl._create_unverified_context()
            context.set_ciphers("ALL:@SECLEVEL=0")
            plain = context.wrap_socket(plain, server_hostname=host)
        plain.settimeout(PATIENCE_S)
        body = b"text" if method == "POST" else b""
        head = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close"]
        head += [f"{name}: {value}" for name, value in fields.items()]
        head += [f"Content-Length: {len(body)}"] if body else []
        plain.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        answer = http.client.HTTPResponse(plain, method=method)
        answer.begin()
        try:
            content = answer.read()
        except http.client.IncompleteRead as cut:
            content = cut.partial + b" (cut)"
        listed = collections.defaultdict(list)
        for name, value in answer.getheaders():
            value = VERSION.sub(b"nginx", value.encode("latin-1")).decode("latin-1")
            listed[name.lower()].append(value)
        shown = {name: ", ".join(value) for name, value in listed.items() if name not in UNLIKE}
        return answer.status, shown, VERSION.sub(b"nginx", content)
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__, {}, b""


def differences(theirs, ours):
    (status, fields, body), (our_status, our_fields, our_body) = theirs, ours
    if status != our_status:
        yield "status", status, our_status
        return
    is_gzip = all(listed.get("content-encoding") == "gzip" for listed in (fields, our_fields))
    for name in sorted(fields.keys() | our_fields.keys()):
        # An error page has the length of its server's name.
        is_length = name in ("content-length", "etag") and b"nginx" in body
        is_length |= name == "content-length" and body.startswith(STUB_STATUS)
        # RFC 9110 section 15.5.6 wants it; nginx leaves it out.
        is_allow = name == "allow" and status == 405
        # RFC 9111 section 5.1 wants it of a cache; nginx leaves it out.
        is_age = name == "age" and name not in fields
        # nginx sends what it compresses in chunks; a compressed form that is kept has a length.
        is_framing = is_gzip and name in ("content-length", "transfer-encoding")
        is_known = is_length or is_allow or is_age or is_framing
        if fields.get(name) != our_fields.get(name) and not is_known:
            yield name, fields.get(name), our_fields.get(name)
    # One text has many compressed forms.
    body, our_body = decoded(fields, body), decoded(our_fields, our_body)
    if body != our_body:
        yield "body", body[:60], our_body[:60]


def decoded(fields, body):
    if body.startswith(STUB_STATUS):
        return COUNTS.sub(b"", body)
    if fields.get("content-encoding") != "gzip":
        return body
    try:
        return VERSION.sub(b"nginx", gzip.decompress(body))
    except (OSError, EOFError, zlib.error):
        return body


def folder(path):
    if not os.path.lexists(path):
        os.makedirs(path, exist_ok=True)


def make(path, content, mode="w"):
    if not os.path.lexists(path):
        folder(os.path.dirname(path))
        with open(path, mode) as file:
            file.write(content)


def furnish(root, meta, keys):
    """Makes what directives name and this machine lacks."""
    for name in meta["files"]:
        if not os.path.isfile(root + name):
            continue
        text = open(root + name, errors="replace").read()
        for directive, value in LINE.findall(text):
            value = (value.split() or [""])[0].strip("\"'")
            if not value or "$" in value or value.startswith(NO_FILES):
                continue
            path = root + (value if value.startswith("/") else f"{CONF}/{value}")
            if directive.endswith("certificate_key"):
                make(path, keys["key"])
            elif directive.endswith("certificate"):
                make(path, keys["certificate"])
            elif directive == "ssl_dhparam":
                make(path, keys["dh"])
            elif directive in ("auth_basic_user_file", "ssl_password_file"):
                make(path, "user:{PLAIN}secret\n")
            elif directive == "ssl_session_ticket_key":
                make(path, "k" * 80)
            elif directive in ("access_log", "error_log", "pid") and value not in ("off", "stderr"):
                folder(os.path.dirname(path))
            elif directive in ("root", "alias"):
                folder(path)
                if os.path.isdir(path):
                    make(path + "/index.html", f"<p>The page of {value}.</p>\n" * 40)
                    make(path + "/a.css", "p { color: black }\n")
            elif directive.endswith(("_temp_path", "_cache_path")):
                folder(path)
            elif directive == "include" and not re.search(r"[*?[]", value):
                make(path, "")


def keys_of(work):
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj",
        "/CN=localhost", "-keyout", work + "/key", "-out", work + "/certificate")
    run("openssl", "dhparam", "-dsaparam", "-out", work + "/dh", "2048")
    return {name: open(f"{work}/{name}").read() for name in ("key", "certificate", "dh")}


def rooted(source, ident, over, keys):
    """An overlay of this machine's root with one configuration's files."""
    meta = json.load(open(f"{source}/{ident}/meta.json"))
    folder(over)
    run("mount", "-t", "tmpfs", "tmpfs", over)
    for name in "uwm":
        os.mkdir(f"{over}/{name}")
    root = over + "/m"
    layers = f"lowerdir=/,upperdir={over}/u,workdir={over}/w"
    run("mount", "-t", "overlay", "overlay", "-o", layers, root)
    run("mount", "--rbind", "/dev", root + "/dev")
    run("mount", "-t", "proc", "proc", root + "/proc")
    shutil.rmtree(root + CONF, ignore_errors=True)
    for stock in glob.glob(f"{source}/stock/*"):
        folder(root + CONF)
        shutil.copy(stock, root + CONF)
    for part in os.listdir(f"{source}/{ident}"):
        if os.path.isdir(f"{source}/{ident}/{part}"):
            shutil.copytree(f"{source}/{ident}/{part}", f"{root}/{part}", dirs_exist_ok=True)
    for name in ("conf.d", "sites-enabled", "modules-enabled", "logs", "html", "snippets"):
        folder(f"{root}{CONF}/{name}")
    for name in ("/var/cache/nginx", "/var/log/nginx", "/var/lib/nginx", "/run"):
        folder(root + name)
    hosts = " ".join(meta["hosts"])
    open(root + "/etc/hosts", "w").write(f"127.0.0.1 localhost {hosts}\n")
    open(root + "/etc/nsswitch.conf", "w").write("passwd: files\ngroup: files\nhosts: files\n")
    for number, user in enumerate([*meta["users"], "nginx"], 7000):
        for file, line in (("passwd", f"{user}:x:{number}:{number}::/:/bin/false\n"),
                           ("group", f"{user}:x:{number}:\n")):
            known = open(f"{root}/etc/{file}").read()
            if not re.search(rf"^{re.escape(user)}:", known, re.M):
                open(f"{root}/etc/{file}", "a").write(line)
    furnish(root, meta, keys)
    return root, meta


def answers(root, meta, program, asked):
    """What a server answers; None: it does not start."""
    shutil.copy(program, root + "/usr/sbin/nginx-compared")
    os.chmod(root + "/usr/sbin/nginx-compared", 0o755)
    os.rename(root + "/usr/sbin/nginx-compared", root + "/usr/sbin/nginx")
    command = ["chroot", root, "/usr/sbin/nginx", "-p", CONF, "-c", meta["conf"]]
    if run("timeout", "30", *command, "-t").returncode:
        return None
    text = open(root + meta["conf"], errors="replace").read()
    if not re.search(r"^\s*daemon\s", text, re.M):
        command += ["-g", "daemon off;"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        ports = {port for (port, *_) in asked}
        until = time.monotonic() + PATIENCE_S
        while ports and time.monotonic() < until and server.poll() in (None, 0):
            ports = {port for port in ports if not is_open(port)}
            time.sleep(0.02)
        return [ask(*one) for one in asked] if not ports else None
    finally:
        end(root)
        server.wait()


def limit_connections(root, meta, connections):
    for name in filter(os.path.isfile, (root + name for name in meta["files"])):
        text = open(name, errors="surrogateescape").read()
        text = re.sub(r"(?<=[\s{;])worker_connections\s[^;]*;", "", text)
        limit = rf"\g<0> worker_connections {connections};"
        text = re.sub(r"^\s*events\s*\{", limit, text, flags=re.M)
        open(name, "w", errors="surrogateescape").write(text)


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def end(root):
    """Ends what runs in the overlay: its processes have this root."""
    for _ in range(3):
        mine = [int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/root")
                if link(path) == root]
        for pid in mine:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not mine:
            return
        time.sleep(0.05)


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def compare(source, ident, ours, theirs, work, keys):
    """The table of one configuration; None: one of the servers does not start."""
    over = f"{work}/over"
    root, meta = rooted(source, ident, over, keys)
    try:
        command = ["timeout", "30", "chroot", root, ours, "-T", "-q", "-p", CONF]
        whole = run(*command, "-c", meta["conf"])
        tree = blocks(iter(list(words(whole.stdout))))
        asked = requests(tree)
        if not asked:
            return None
        answered = [answers(root, meta, program, asked) for program in (theirs, ours)]
        if None in answered:
            return None
        unlike = [list(differences(*both)) for both in zip(*answered)]
        for connections in CONNECTIONS if any(unlike) else ():
            # A server that passes a request on to itself does so until it has no connections
            # left; how it answers then, its limit decides.
            limit_connections(root, meta, connections)
            again = answers(root, meta, theirs, asked) or answered[0]
            for place, (before, now) in enumerate(zip(answered[0], again)):
                unlike[place] *= not any(differences(before, now))
        return [(one, *row) for one, rows in zip(asked, unlike) for row in rows]
    finally:
        for mounted in (root + "/proc", root + "/dev", root, over):
            run("umount", "-l", mounted)


def main():
    ours, theirs, source, *idents = sys.argv[1:]
    for setting in ("net.ipv4.ip_nonlocal_bind", "net.ipv6.ip_nonlocal_bind"):
        run("sysctl", "-qw", setting + "=1")
    run("sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0")
    run("ip", "link", "set", "lo", "up")
    work = tempfile.mkdtemp()
    keys = keys_of(work)
    all_of_them = (path.split("/")[-2] for path in glob.glob(f"{source}/*/meta.json"))
    count = collections.Counter()
    for ident in idents or sorted(all_of_them):
        rows = compare(source, ident, ours, theirs, work, keys)
        count["not started" if rows is None else "unlike" if rows else "alike"] += 1
        for ((port, tls, host, method, path, fields), what, first, second) in rows or []:
            scheme = "https" if tls else "http"
            print(ident, f"{method} {scheme}://{host}:{port}{path} {fields or ''}", what,
                  f"nginx {first!r}", f"ours {second!r}", sep="\t", flush=True)
    shutil.rmtree(work, ignore_errors=True)
    alike, unlike, left = (count[name] for name in ("alike", "unlike", "not started"))
    print(f"{alike} alike, {unlike} unlike, {left} not started by both")


main()
