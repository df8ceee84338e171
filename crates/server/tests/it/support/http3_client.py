"""A client of HTTP/3 over aioquic, for tests: it reads commands, one a line, and prints a line for
each answer: the statuses of interim responses, the status, the number of bytes, and the body, or its
hash where it is long."""

import argparse
import asyncio
import hashlib
import os
import pickle
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

PATIENCE_S = 60
SHORT_BYTES = 400
# RFC 9114 section 8.1.
REQUEST_CANCELLED = 0x10C
# RFC 9220 section 3.
ENABLE_CONNECT_PROTOCOL = 0x8
# The example of RFC 6455 section 1.3.
WEBSOCKET_KEY = "dGhlIHNhbXBsZSBub25jZQ=="


class Answer:
    def __init__(self, loop):
        self.heads = []
        self.body = b""
        # Something of the body has come; all has, or there will be no more.
        self.begun = loop.create_future()
        self.done = loop.create_future()

    def take(self, data):
        self.body += data
        if not self.begun.done():
            self.begun.set_result(self)

    def finish(self):
        if not self.done.done():
            self.done.set_result(self)

    def text(self, names):
        finals = [head for head in self.heads if not is_interim(head)]
        if not finals:
            return "none"
        head = dict(finals[0])
        body = self.body.decode("latin-1").replace("\n", "|")
        if len(self.body) > SHORT_BYTES:
            body = hashlib.sha256(self.body).hexdigest()
        words = [dict(head)[b":status"].decode() for head in self.heads if is_interim(head)]
        words += [head[b":status"].decode(), str(len(self.body)), body]
        words += [head.get(name.encode(), b"-").decode("latin-1") for name in names]
        return " ".join(words)

    def heads_text(self, names):
        """The heads before the body and the trailers, with these fields, and the body."""
        texts = []
        for head in map(dict, self.heads):
            words = [head.get(b":status", b"trailers").decode()]
            words += [
                f"{name}={head[name.encode()].decode('latin-1')}"
                for name in names
                if name.encode() in head
            ]
            texts.append(" ".join(words))
        return "; ".join([*texts, self.body.decode("latin-1")])


def is_interim(head):
    return dict(head).get(b":status", b"").startswith(b"1")


class Client(QuicConnectionProtocol):
    # Why the connection has ended.
    why = None
    # Whether all that comes is lost.
    is_deaf = False

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        # The first one is the server's, and has at least eight bytes (RFC 9000 section 7.2).
        first = os.urandom(8)
        self._quic._peer_cid.cid = first
        self._quic._original_destination_connection_id = first
        if self._quic.configuration.connection_id_length == 0:
            # There can be no others then (RFC 9000 section 5.1.1).
            self._quic._replenish_connection_ids = lambda: None
        self.http = H3Connection(self._quic)
        self.answers = {}

    def datagram_received(self, data, address):
        if not self.is_deaf:
            super().datagram_received(data, address)

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            Client.why = f"closed {event.error_code:#x} {event.reason_phrase}".strip()
            for answer in self.answers.values():
                answer.finish()
        if isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id].finish()
        for part in self.http.handle_event(event):
            answer = self.answers.get(getattr(part, "stream_id", None))
            if answer is None:
                continue
            if isinstance(part, HeadersReceived):
                answer.heads.append(part.headers)
            elif isinstance(part, DataReceived):
                answer.take(part.data)
            if part.stream_ended:
                answer.finish()

    def ask(self, method, authority, path, body=None, fields=(), trailers=()):
        answer = Answer(asyncio.get_running_loop())
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = answer
        answer.stream = stream
        head = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)]
        head += [field.split("=", 1) for field in fields]
        self.http.send_headers(stream, encoded(head), end_stream=body is None and not trailers)
        if body is not None:
            self.http.send_data(stream, body, end_stream=not trailers)
        if trailers:
            last = [field.split("=", 1) for field in trailers]
            self.http.send_headers(stream, encoded(last), end_stream=True)
        self.transmit()
        return answer

    def connect_for(self, protocol, authority, path):
        """Extended CONNECT (RFC 9220): a stream that stays open."""
        answer = Answer(asyncio.get_running_loop())
        answer.stream = self._quic.get_next_available_stream_id()
        self.answers[answer.stream] = answer
        head = [(":method", "CONNECT"), (":protocol", protocol), (":scheme", "https")]
        head += [(":authority", authority), (":path", path)]
        head += [("sec-websocket-version", "13"), ("sec-websocket-key", WEBSOCKET_KEY)]
        self.http.send_headers(answer.stream, encoded(head))
        self.transmit()
        return answer


def encoded(fields):
    return [(name.encode(), value.encode()) for name, value in fields]


def configuration(options):
    made = QuicConfiguration(
        is_client=True,
        alpn_protocols=options.alpn.split(","),
        verify_mode=ssl.CERT_NONE,
        connection_id_length=options.connection_id_bytes,
        server_name=options.name,
    )
    if options.certificate:
        made.load_cert_chain(*options.certificate.split(","))
    if options.tickets and options.resume:
        with open(options.tickets, "rb") as file:
            made.session_ticket = pickle.load(file)
    if options.token and os.path.exists(options.token):
        with open(options.token, "rb") as file:
            made.token = file.read()
    return made


async def obey(client, words, options):
    verb, rest = words[0], words[1:]
    authority = options.authority or options.name
    if verb == "many":
        asked = [client.ask("GET", authority, rest[1]) for _ in range(int(rest[0]))]
        answers = [await asyncio.wait_for(answer.done, PATIENCE_S) for answer in asked]
        texts = sorted({answer.text([]) for answer in answers})
        print(len(answers), *texts, flush=True)
    elif verb == "begin":
        # The answer is printed by "end", when it has come whole.
        client.slow = client.ask("GET", authority, rest[0])
        await asyncio.wait_for(client.slow.begun, PATIENCE_S)
        print("begun", flush=True)
    elif verb == "end":
        await asyncio.wait_for(client.slow.done, PATIENCE_S)
        print(client.slow.text(options.show), client.why or "", flush=True)
    elif verb == "deaf":
        # Nothing of the answer comes until "hear".
        client.is_deaf = True
        client.slow = client.ask("GET", authority, rest[0])
        print("deaf", flush=True)
    elif verb == "hear":
        client.is_deaf = False
    elif verb == "cancel":
        # So many times, each once something of the answer has come.
        for _ in range(int(rest[0])):
            answer = client.ask("GET", authority, rest[1])
            await asyncio.wait_for(answer.begun, PATIENCE_S)
            client._quic.stop_stream(answer.stream, REQUEST_CANCELLED)
            client.transmit()
        print("cancelled", flush=True)
    elif verb == "heads":
        body = bytes(int(rest[2])) if len(rest) > 2 else None
        answer = client.ask(rest[0], authority, rest[1], body, options.field, options.trailer)
        await asyncio.wait_for(answer.done, PATIENCE_S)
        print(answer.heads_text(options.show), flush=True)
    elif verb == "tunnel":
        answer = client.connect_for("websocket", authority, rest[0])
        bytes_sent = int(rest[1])
        client.http.send_data(answer.stream, b"x" * bytes_sent, end_stream=True)
        client.transmit()
        await asyncio.wait_for(answer.done, PATIENCE_S)
        status = dict(answer.heads[0])[b":status"].decode()
        settings = client.http.received_settings[ENABLE_CONNECT_PROTOCOL]
        print(settings, status, len(answer.body), answer.body[:6].decode(), flush=True)
    elif verb == "retried":
        print(client._quic._retry_source_connection_id is not None, flush=True)
    elif verb == "sleep":
        await asyncio.sleep(float(rest[0]))
    elif verb == "rebind":
        # Another port of the client: what a router does to a client without its knowledge.
        loop = asyncio.get_running_loop()
        old = client._transport
        made, _ = await loop.create_datagram_endpoint(lambda: client, local_addr=("::", 0))
        client._transport = made
        old.abort()
    elif verb == "ids":
        client.change_connection_id()
    elif verb == "keys":
        client.request_key_update()
    elif verb == "ping":
        await asyncio.wait_for(client.ping(), PATIENCE_S)
        print("pong", flush=True)
    elif verb == "wait":
        await asyncio.wait_for(client.wait_closed(), PATIENCE_S)
        print(client.why, flush=True)
    else:
        body = None
        if verb not in ("GET", "HEAD"):
            body = bytes(number * 31 % 251 for number in range(int(rest[1])))
        answer = client.ask(verb, authority, rest[0], body, options.field)
        await asyncio.wait_for(answer.done, PATIENCE_S)
        print(answer.text(options.show), client.why or "", flush=True)


async def run(options):
    def keep(ticket):
        if options.tickets:
            with open(options.tickets, "wb") as file:
                pickle.dump(ticket, file)

    def keep_token(token):
        if options.token:
            with open(options.token, "wb") as file:
                file.write(token)

    loop = asyncio.get_running_loop()
    async with connect(
        options.address,
        options.port,
        configuration=configuration(options),
        create_protocol=Client,
        session_ticket_handler=keep,
        token_handler=keep_token,
        wait_connected=not options.early,
    ) as client:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            await obey(client, line.split(), options)
        if options.resume:
            print("resumed", client._quic.tls.session_resumed, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--name", default="a.test")
    parser.add_argument("--authority")
    parser.add_argument("--alpn", default="h3")
    parser.add_argument("--certificate")
    parser.add_argument("--connection-id-bytes", type=int, default=8)
    parser.add_argument("--tickets")
    parser.add_argument("--token")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--early", action="store_true")
    parser.add_argument("--field", action="append", default=[])
    parser.add_argument("--trailer", action="append", default=[])
    parser.add_argument("--show", action="append", default=[])
    options = parser.parse_args()
    try:
        asyncio.run(run(options))
    except ConnectionError:
        print("refused", Client.why, flush=True)


main()
