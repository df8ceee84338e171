"""Asks a server what `cargo xtask clients` wants to see, by httpx.

    client.py PROTOCOL OPEN KNOWN KEYS

PROTOCOL is 1 or 2, OPEN and KNOWN are ports, the second one wants certificates, and KEYS is the
folder of the certificates. A line for each cell of the matrix says how it went.
"""
import ssl, sys

import httpx

# How long a request may take on a busy machine.
DEADLINE_SECONDS = 120
POST_BYTES = 300_000
LARGE_BYTES = 32 << 20

protocol, open_port, known_port, keys = sys.argv[1:]
NAME = {"1": "HTTP/1.1", "2": "HTTP/2.0"}[protocol]
AT = f"https://localhost:{open_port}"


class Socket(ssl.SSLSocket):
    """A connection that leaves its session to the next one."""

    last = None

    def close(self):
        Socket.last = self.session or Socket.last
        super().close()


class Context(ssl.SSLContext):
    """A context that begins each connection with the session of the one before."""

    sslsocket_class = Socket

    def wrap_socket(self, sock, **more):
        return super().wrap_socket(sock, session=Socket.last, **more)


def context(kind=ssl.SSLContext):
    made = kind(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(f"{keys}/root.pem")
    return made


def client(made):
    return httpx.Client(http1=protocol == "1", http2=protocol == "2", verify=made,
                        timeout=DEADLINE_SECONDS)


def pattern(size):
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def expect(found, wanted):
    if wanted not in found:
        raise ValueError(f"no {wanted!r:.60} in {found!r:.200}")


def page():
    with client(context()) as one:
        expect(one.get(f"{AT}/page").text, f"a page over {NAME}")


def post():
    sent = pattern(POST_BYTES)
    with client(context()) as one:
        if one.post(f"{AT}/post", content=sent).content != sent:
            raise ValueError("other bytes came back")


def large():
    with client(context()) as one:
        if one.get(f"{AT}/large").content != pattern(LARGE_BYTES):
            raise ValueError("other bytes came")


def certificate():
    at = f"https://localhost:{known_port}/facts"
    with client(context()) as one:
        expect(str(one.get(at).status_code), "400")
    made = context()
    made.load_cert_chain(f"{keys}/client.pem", f"{keys}/client.key")
    with client(made) as one:
        expect(one.get(at).text, "verify=SUCCESS CN=client")


def resumed():
    made = context(Context)
    for reused in (".", "r"):
        with client(made) as one:
            expect(one.get(f"{AT}/facts").text, f"reused={reused}")


for cell in (page, post, large, certificate, resumed):
    try:
        cell()
        print(cell.__name__, "pass")
    except Exception as error:
        print(cell.__name__, "fail:", type(error).__name__, str(error).replace("\n", " "))
