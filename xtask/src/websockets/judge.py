"""WebSockets through a proxy, judged by the libraries websockets and h2 from PyPI.

    judge.py echo                 serves an echo; prints its port; ends with its input
    judge.py judge ECHO PROXY     compares conversations: with the echo itself, and through the proxy
                                  over TLS, by HTTP/1.1 and on streams of HTTP/2

The bytes that the echo sends in a conversation must be the same whichever way they came.
"""
import asyncio, base64, os, socket, ssl, sys

import h2.config, h2.connection, h2.events, h2.settings
from websockets.asyncio.server import serve
from websockets.frames import Frame, Opcode

WAIT_SECONDS = 60
# How a connection ends that the other side has closed while we send.
ENDED = (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
PATH = "/socket"


def frame(opcode, data=b"", fin=True, mask=True):
    return Frame(opcode, data, fin=fin).serialize(mask=mask)


def text(data, **more):
    return frame(Opcode.TEXT, data, **more)


def close(code=1000, reason=b""):
    return frame(Opcode.CLOSE, code.to_bytes(2, "big") + reason)


def fragments(opcode, parts, between=b""):
    """A message in parts, with other frames between them."""
    sent = b""
    for number, part in enumerate(parts):
        kind = opcode if number == 0 else Opcode.CONT
        sent += frame(kind, part, fin=number == len(parts) - 1)
        sent += between if number < len(parts) - 1 else b""
    return sent


def echoed(*sizes):
    """Bytes of frames from the echo, by the bytes that they carry."""
    return sum(n + (2 if n < 126 else 4 if n < 65536 else 10) for n in sizes)


def cases():
    """Names, what a client sends, the bytes that come back to it, and what it ends with."""
    for kind in (Opcode.TEXT, Opcode.BINARY):
        for size in (0, 1, 125, 126, 127, 128, 1000, 65535, 65536, 200_000, 1 << 20):
            yield f"{kind.name} of {size}", frame(kind, b"*" * size), echoed(size), close()
    for size in (0, 1, 64, 125):
        yield f"ping of {size}", frame(Opcode.PING, bytes(range(size))), echoed(size), close()
    pings = b"".join(frame(Opcode.PING, b"%d" % n) for n in range(10))
    yield "ten pings", pings, echoed(*[1] * 10), close()
    pong = frame(Opcode.PONG, b"x") + text(b"hello")
    yield "a pong nobody asked for", pong, echoed(5), close()
    for count in (2, 3, 50):
        parts = [b"part %d, " % n for n in range(count)]
        whole = len(b"".join(parts))
        sent = fragments(Opcode.TEXT, parts)
        yield f"{count} fragments", sent, echoed(whole), close()
        sent = fragments(Opcode.BINARY, parts, frame(Opcode.PING, b"between"))
        yield f"{count} fragments and pings", sent, echoed(whole, *[7] * (count - 1)), close()
    yield "empty fragments", fragments(Opcode.TEXT, [b"", b"", b""]), echoed(0), close()
    texts = [b"%d" % n for n in range(100)]
    yield "100 messages", b"".join(map(text, texts)), echoed(*map(len, texts)), close()
    letters = "κόσμε \U0001f600 ÿ".encode()
    yield "characters", text(letters), echoed(len(letters)), close()
    cut = fragments(Opcode.TEXT, [b"\xce", b"\xba"])
    yield "a character cut by fragments", cut, echoed(2), close()
    for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999):
        yield f"close by {code}", b"", 0, close(code)
        yield f"close by {code}, with a reason", b"", 0, close(code, b"r" * 123)
    yield "close without a code", b"", 0, frame(Opcode.CLOSE)
    for name, sent in faults():
        yield name, b"", 0, sent


def faults():
    """What a server must refuse."""
    for number, bit in enumerate((0x40, 0x20, 0x10), 1):
        yield f"reserved bit {number}", bytes([0x81 | bit, 0x80, 0, 0, 0, 0])
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        yield f"reserved opcode {opcode}", bytes([0x80 | opcode, 0x80, 0, 0, 0, 0])
    yield "a fragmented ping", bytes([0x09, 0x80, 0, 0, 0, 0])
    yield "a ping of 126", bytes([0x89, 0xFE, 0, 126, 0, 0, 0, 0]) + bytes(126)
    yield "a continuation of nothing", bytes([0x80, 0x80, 0, 0, 0, 0])
    yield "a message within another", text(b"a", fin=False) + text(b"b")
    yield "an unmasked frame", text(b"x", mask=False)
    for bytes_ in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ab\xce"):
        yield f"no UTF-8: {bytes_.hex()}", text(bytes_)
    for code in (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000):
        yield f"close by {code}, which is no code", close(code)
    yield "a close of one byte", bytes([0x88, 0x81, 0, 0, 0, 0, 3])


def connect(port, protocols):
    plain = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if protocols is None:
        return plain
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    secure = context.wrap_socket(plain, server_hostname="localhost")
    assert secure.selected_alpn_protocol() == protocols[0]
    return secure


class Http1:
    """A connection of its own."""

    def __init__(self, port, protocols):
        self.socket = connect(port, protocols)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((
            f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n"
        ).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.socket.recv(4096)
        head, self.early = head.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 101 "), head

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        if self.early:
            early, self.early = self.early, b""
            return early
        try:
            return self.socket.recv(65536)
        except ENDED:
            return b""

    def close(self):
        self.socket.close()


class Http2:
    """A stream of a connection with two other open streams."""

    def __init__(self, port):
        self.socket = connect(port, ["h2"])
        config = h2.config.H2Configuration(header_encoding="utf-8")
        self.connection = h2.connection.H2Connection(config)
        self.connection.initiate_connection()
        self.data, self.has_ended = b"", False
        connect_protocol = h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL
        while not self.connection.remote_settings.get(connect_protocol):
            self.turn()
        for self.stream in (1, 3, 5):
            self.status = None
            self.connection.send_headers(self.stream, [
                (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"),
                (":path", PATH), (":authority", "localhost"), ("sec-websocket-version", "13"),
            ])
            while self.status is None:
                self.turn()
            assert self.status == "200", self.status

    def turn(self):
        """Sends what is to be sent, and reads once."""
        self.socket.sendall(self.connection.data_to_send())
        received = self.socket.recv(65536)
        if not received:
            self.has_ended = True
        for event in self.connection.receive_data(received) if received else ():
            if isinstance(event, h2.events.ResponseReceived) and event.stream_id == self.stream:
                self.status = dict(event.headers)[":status"]
            elif isinstance(event, h2.events.DataReceived):
                length, stream = event.flow_controlled_length, event.stream_id
                self.connection.acknowledge_received_data(length, stream)
                self.data += event.data if stream == self.stream else b""
            elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                self.has_ended |= event.stream_id == self.stream
        self.socket.sendall(self.connection.data_to_send())

    def send(self, data):
        while data and not self.has_ended:
            window = self.connection.local_flow_control_window(self.stream)
            count = min(window, self.connection.max_outbound_frame_size, len(data))
            if count == 0:
                self.turn()
                continue
            self.connection.send_data(self.stream, data[:count])
            self.socket.sendall(self.connection.data_to_send())
            data = data[count:]

    def receive(self):
        while not self.data and not self.has_ended:
            self.turn()
        data, self.data = self.data, b""
        return data

    def close(self):
        self.socket.close()


def converse(peer, sent, back, end, piece):
    """What comes back until the echo closes."""
    received = b""
    try:
        for at in range(0, len(sent), piece):
            peer.send(sent[at : at + piece])
        while len(received) < back and (part := peer.receive()):
            received += part
        for at in range(0, len(end), piece):
            peer.send(end[at : at + piece])
    except ENDED:
        pass
    while part := peer.receive():
        received += part
    peer.close()
    return received


def judge(echo, proxy):
    ways = [
        ("HTTP/1.1", lambda: Http1(proxy, ["http/1.1"])),
        ("HTTP/2", lambda: Http2(proxy)),
    ]
    count, failed = 0, []
    for name, *talk in cases():
        expected = converse(Http1(echo, None), *talk, 1 << 30)
        assert expected, name
        for way, peer in ways:
            for piece in (1 << 30, 997 if len(talk[0]) > 997 else 1):
                count += 1
                received = converse(peer(), *talk, piece)
                if received != expected:
                    failed.append(f"{way}, {name}, pieces of {piece}: "
                                  f"{received[:40]!r} instead of {expected[:40]!r}")
    print("\n".join(failed + [f"{count - len(failed)} of {count} conversations are the same"]))
    return 1 if failed or count < 350 else 0


async def echo():
    async def answer(socket):
        async for message in socket:
            await socket.send(message)

    async with serve(answer, "127.0.0.1", 0, compression=None, max_size=None,
                     ping_interval=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if sys.argv[1] == "echo":
    import logging
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    asyncio.run(echo())
else:
    sys.exit(judge(int(sys.argv[2]), int(sys.argv[3])))
