"""What clients of QUIC send, by aioquic: real connections, each printed as a line of its datagrams in
hexadecimal digits, in the order in which they were sent."""

import socket
import ssl
import sys
import time

from aioquic.h3.connection import H3Connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted

address = ("127.0.0.1", int(sys.argv[1]))
PATIENCE_S = 30


def converse(name):
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=["h3"], server_name=name, verify_mode=ssl.CERT_NONE
    )
    quic = QuicConnection(configuration=configuration)
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.connect(address)
    link.settimeout(0.02)
    sent = []
    quic.connect(address, now=time.time())
    end = time.time() + PATIENCE_S
    while time.time() < end:
        for data, _ in quic.datagrams_to_send(now=time.time()):
            link.send(data)
            sent.append(data)
        while event := quic.next_event():
            if isinstance(event, HandshakeCompleted):
                http = H3Connection(quic)
                stream = quic.get_next_available_stream_id()
                head = [(b":method", b"GET"), (b":scheme", b"https")]
                head += [(b":authority", b"a.test"), (b":path", b"/a.txt")]
                http.send_headers(stream, head, end_stream=True)
                quic.change_connection_id()
                quic.close()
            if isinstance(event, ConnectionTerminated):
                return sent
        try:
            quic.receive_datagram(link.recv(65536), address, now=time.time())
        except TimeoutError:
            quic.handle_timer(now=time.time())
    return sent


for number in range(int(sys.argv[2])):
    # Names of other lengths make first flights of other sizes: of one datagram, and of two.
    sent = converse("a." * (1 + 30 * (number % 4)) + "test")
    print(",".join(data.hex() for data in sent), flush=True)
