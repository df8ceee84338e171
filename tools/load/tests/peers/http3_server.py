"""A server of HTTP/3 by aioquic. Prints its port, and, when its input ends, what it has seen."""

import asyncio
import json
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, ProtocolNegotiated

seen = {"requests": 0, "connections": 0, "resumed": 0, "early": 0, "body_bytes": 0, "peers": []}
tickets = {}
body = b"x" * int(sys.argv[3])


class Protocol(QuicConnectionProtocol):
    http = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
            self.asked = set()
        if isinstance(event, HandshakeCompleted):
            seen["connections"] += 1
            seen["resumed"] += event.session_resumed
            seen["early"] += event.early_data_accepted
            seen["peers"].append(self._quic._network_paths[0].addr[0])
        if self.http is None:
            return
        for event in self.http.handle_event(event):
            if isinstance(event, DataReceived):
                seen["body_bytes"] += len(event.data)
            if isinstance(event, (DataReceived, HeadersReceived)) and event.stream_ended:
                self.answer(event.stream_id)

    def answer(self, stream):
        seen["requests"] += 1
        fields = [(b":status", b"200"), (b"content-length", str(len(body)).encode())]
        self.http.send_headers(stream, fields)
        self.http.send_data(stream, body, end_stream=True)
        self.transmit()


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(sys.argv[1], sys.argv[2])
    server = await serve(
        "127.0.0.1",
        0,
        configuration=configuration,
        create_protocol=Protocol,
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.__setitem__(ticket.ticket, ticket),
    )
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps(seen), flush=True)
    server.close()


asyncio.run(main())
