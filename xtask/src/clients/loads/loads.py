"""Puts loads on a server for `cargo xtask http2-clients`, by gRPC's library for Python.

    loads.py grpcio PLAIN SECURE ROOT

PLAIN is the port of the proxy before the service of `judge.py`. A line for each cell of the matrix
says how it went.
"""
import json, sys
from concurrent import futures

import grpc

WAIT_SECONDS = 300
LARGE_BYTES, PART_BYTES, MIDDLE_BYTES = 128 << 20, 1 << 20, 100_000
STREAMS, AT_ONCE = 1000, 100
CANCELS, CANCELLING = 3000, 20
BURSTS = 3

OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    # A PING for each stretch of data, and whenever one is allowed besides.
    ("grpc.http2.bdp_probe", 1),
    ("grpc.http2.max_pings_without_data", 0),
]
channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[2]}", OPTIONS)


def call(kind, method, request):
    return getattr(channel, kind)(f"/turnpike.Judge/{method}")(request, timeout=WAIT_SECONDS)


def expect(found, wanted):
    if found != wanted:
        raise ValueError(f"{found!r:.100} instead of {wanted!r:.100}")


def small():
    expect(call("unary_unary", "echo", b"small"), b"small")


def count(messages, size):
    answers = call("unary_stream", "count", json.dumps([messages, size]).encode())
    expect(sum(len(answer) >= size for answer in answers), messages)


def parallel(times, width, work):
    with futures.ThreadPoolExecutor(width) as pool:
        for one in [pool.submit(work) for _ in range(times)]:
            one.result()


def download():
    with futures.ThreadPoolExecutor(1) as pool:
        large = pool.submit(count, LARGE_BYTES // PART_BYTES, PART_BYTES)
        while not large.done():
            small()
        large.result()


def streams():
    parallel(STREAMS, AT_ONCE, lambda: count(1, MIDDLE_BYTES))


def upload():
    parts = LARGE_BYTES // PART_BYTES
    sent = (bytes(PART_BYTES) for _ in range(parts))
    expect(call("stream_unary", "sum", sent), b"%d %d" % (parts, LARGE_BYTES))


def cancel():
    def one():
        answers = call("unary_stream", "flood", b"loads")
        expect(len(next(answers)), 10_000)
        answers.cancel()
    parallel(CANCELS, CANCELLING, one)


def burst():
    wait = channel.unary_unary("/turnpike.Judge/wait")
    for _ in range(BURSTS):
        for one in [wait.future(b"loads") for _ in range(AT_ONCE)]:
            one.cancel()
    small()


print("version", grpc.__version__)
for work in (download, streams, upload, cancel, burst):
    try:
        work()
        print(work.__name__, "pass", flush=True)
    except Exception as error:
        print(work.__name__, "fail:", " ".join(f"{type(error).__name__} {error}".split()),
              flush=True)
