"""QUIC by aioquic: quic.py serve NAME KEYS prints the server's port and sends back what it gets,
with its name before it; quic.py ask PORT KEYS CLIENTS has clients send to it."""

import asyncio
import sys

from aioquic.asyncio import connect, serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration

PROTOCOL = "echo"
PIECES = 12
PIECE = bytes(at % 251 for at in range(200_000))
STREAMS = 3


async def echo(name, reader, writer):
    data = await reader.read()
    writer.write(name.encode() + b"\n" + data)
    writer.write_eof()


async def run_server(name, keys):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=[PROTOCOL])
    configuration.load_cert_chain(f"{keys}/server.pem", f"{keys}/server.key")

    def answer(reader, writer):
        asyncio.ensure_future(echo(name, reader, writer))

    server = await serve("127.0.0.1", 0, configuration=configuration, stream_handler=answer)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    # The server ends when its input does.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


async def ask(protocol, number):
    reader, writer = await protocol.create_stream()
    sent = number.to_bytes(4, "big") + PIECE
    writer.write(sent)
    writer.write_eof()
    name, _, data = (await reader.read()).partition(b"\n")
    if data != sent:
        raise SystemExit(f"{len(data)} bytes came back, {len(sent)} were sent")
    return name


async def client(port, keys):
    configuration = QuicConfiguration(alpn_protocols=[PROTOCOL], server_name="localhost")
    configuration.load_verify_locations(f"{keys}/root.pem")
    names = set()
    async with connect("127.0.0.1", port, configuration=configuration,
                       create_protocol=QuicConnectionProtocol) as protocol:
        for piece in range(PIECES):
            asked = [ask(protocol, piece * STREAMS + stream) for stream in range(STREAMS)]
            names.update(await asyncio.gather(*asked))
            await asyncio.sleep(0.1)
    return names


async def run_clients(port, keys, count):
    every = await asyncio.gather(*[client(port, keys) for _ in range(count)])
    if any(len(names) != 1 for names in every):
        raise SystemExit(f"a connection met several servers: {every}")
    met = set().union(*every)
    print(f"{count} connections, {count * PIECES * STREAMS} streams, "
          f"servers {b' '.join(sorted(met)).decode()}")


if sys.argv[1] == "serve":
    asyncio.run(run_server(sys.argv[2], sys.argv[3]))
else:
    asyncio.run(run_clients(int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
