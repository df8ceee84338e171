"""Visits the site of pages.py through a server: visit.py PORT."""

import hashlib
import http.client
import re
import sys
import uuid

PORT = int(sys.argv[1])


def ask(connection, method, path, body=None, **fields):
    connection.request(method, path, body, {key.replace("_", "-"): fields[key] for key in fields})
    response = connection.getresponse()
    return response, response.read()


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found!r}, expected {expected!r}")


def visit(connection):
    # Debian's files of parameters name the host without its port.
    host = "127.0.0.1"
    response, body = ask(connection, "GET", "/?q=a%20b%C3%A9")
    check("the front page", (response.status, body.decode()), (200, f"http {host} 127.0.0.1 a bé"))
    head, body = ask(connection, "HEAD", "/")
    check("its head", (head.status, body), (200, b""))

    # A session: the form sets a cookie, and the page behind the redirect knows the name.
    response, _ = ask(connection, "POST", "/form", "name=Ada+L",
                      Content_Type="application/x-www-form-urlencoded")
    check("the form", (response.status, response.getheader("Location")), (302, "/welcome"))
    cookie = response.getheader("Set-Cookie").split(";")[0]
    _, body = ask(connection, "GET", "/welcome", Cookie=cookie)
    check("the welcome", body, b"Welcome, Ada L")
    _, body = ask(connection, "GET", "/welcome")
    check("a stranger's", body, b"Welcome, stranger")

    # Larger than the buffers on the way, in a multipart form.
    data = bytes(at * 7 % 256 for at in range(3_000_000))
    border = uuid.uuid4().hex
    part = (f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\n").encode()
    body = part + data + f"\r\n--{border}--\r\n".encode()
    response, body = ask(connection, "POST", "/upload", body,
                         Content_Type=f"multipart/form-data; boundary={border}")
    found = re.findall(rb'"(?:bytes|sha256)":"?(\w+)', body)
    check("the upload", found, [b"3000000", hashlib.sha256(data).hexdigest().encode()])

    response, body = ask(connection, "GET", "/stream")
    expected = "".join(f"line {number}\n" * 100 for number in range(500))
    check("the stream", (response.status, body.decode()), (200, expected))

    statuses = []
    for _ in range(2):
        response, body = ask(connection, "GET", "/cached")
        check("the stored page", body, b"kept")
        statuses.append(response.getheader("X-Cache"))
    check("where it comes from", statuses[1], "HIT")
    response, body = ask(connection, "GET", "/cached", If_None_Match='"one"')
    check("the condition", (response.status, body), (304, b""))
    response, _ = ask(connection, "GET", "/broken")
    check("the broken page", response.status, 500)
    response, _ = ask(connection, "GET", "/nothing")
    check("no page", response.status, 404)


for _ in range(3):
    # One connection, kept from question to question.
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    visit(connection)
    connection.close()
print("the site answers as it should")
