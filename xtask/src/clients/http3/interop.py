"""Has the interop client of aioquic's source package ask our server, and no other, for
`cargo xtask http3-clients`:

    interop.py EXAMPLES PORT RETRY

EXAMPLES is the folder of the client, RETRY the port at which clients have to prove their address.
A line for each cell of the matrix says how it went."""

import asyncio
import contextlib
import io
import logging
import ssl
import sys

sys.path.insert(0, sys.argv[1])
import interop  # noqa: E402
from interop import Result  # noqa: E402

# The cells, the client's tests, and what these have to find. It compares times in
# test_throughput, which is not asked for.
CELLS = [
    ("versions", "test_version_negotiation", Result.V),
    ("handshake", "test_handshake_and_close", Result.H | Result.C),
    ("retry", "test_retry", Result.S),
    ("quantum", "test_quantum_readiness", Result.Q),
    ("requests", "test_http_3", Result.D | Result.three),
    ("resumed", "test_session_resumption", Result.R),
    ("early", "test_session_resumption", Result.Z),
    ("keys", "test_key_update", Result.U),
    ("ids", "test_server_cid_change", Result.M),
    ("rebinding", "test_nat_rebinding", Result.B),
    ("migration", "test_address_mobility", Result.A),
]


def ask(test, wanted):
    server = interop.Server(
        "turnpike",
        "127.0.0.1",
        port=int(sys.argv[2]),
        retry_port=int(sys.argv[3]),
        path="/page",
        verify_mode=ssl.CERT_NONE,
    )
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        asyncio.run(
            interop.main(servers=[server], tests=[(test, getattr(interop, test))])
        )
    if server.result & wanted == wanted:
        return "pass"
    return "fail: " + " ".join(said.getvalue().split())


logging.basicConfig(level=logging.WARNING)
for cell, test, wanted in CELLS:
    print(cell, ask(test, wanted))
