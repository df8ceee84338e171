"""A gRPC service and its client, both of gRPC's own library, with a proxy between them.

    judge.py serve KEY CERTIFICATE    serves on a plain and on a secure port, and prints both; ends
                                      with its input
    judge.py judge ROOT NAME=PORT...  calls the service through a proxy's ports; a name with "tls "
                                      at its start is called over TLS

The judge prints "reload WORD" where the proxy is to be reloaded, so that it sends x-round: WORD.
Messages are bytes: what is in them is not the proxy's business.
"""
import json, queue, sys, threading, time
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

SERVICE = "turnpike.Judge"
# How long a call may take on a busy machine.
WAIT_SECONDS = 60
# More threads than calls that wait at once.
THREADS = 64
OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
]
LARGE_BYTES = 16 << 20
DETAILS = "wrong: ü 100 % \U0001f600"


class Service:
    """The methods, and what they have seen."""

    def __init__(self):
        self.ended, self.lock = {}, threading.Lock()
        self.health = health.HealthServicer()

    def end(self, name):
        with self.lock:
            self.ended[name] = self.ended.get(name, 0) + 1

    def echo(self, request, context):
        first = (("x-initial", "first"), ("x-initial-bin", bytes(range(256))))
        context.send_initial_metadata(first)
        context.set_trailing_metadata((("x-trailing", "last"), ("x-trailing-bin", b"\0\xff")))
        return request

    def facts(self, request, context):
        metadata = {key: str(value) for key, value in context.invocation_metadata()}
        remaining = context.time_remaining()
        return json.dumps({"metadata": metadata, "remaining": remaining}).encode()

    def count(self, request, context):
        count, size = json.loads(request)
        for number in range(count):
            yield b"%d," % number + b"x" * size

    def sum(self, requests, context):
        count = size = 0
        for request in requests:
            count, size = count + 1, size + len(request)
        return b"%d %d" % (count, size)

    def talk(self, requests, context):
        for request in requests:
            yield b"re: " + request

    def fail(self, request, context):
        context.set_trailing_metadata((("x-why", "because"),))
        context.abort(code_of(int(request)), DETAILS)

    def fail_late(self, request, context):
        yield b"1"
        yield b"2"
        context.abort(grpc.StatusCode.DATA_LOSS, DETAILS)

    def wait(self, request, context):
        """Waits until the client is gone."""
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait(WAIT_SECONDS)
        self.end(request.decode())
        return b""

    def flood(self, request, context):
        """Sends until the client is gone."""
        context.add_callback(lambda: self.end(request.decode()))
        while context.is_active():
            yield b"x" * 10_000

    def ended_calls(self, request, context):
        with self.lock:
            return b"%d" % self.ended.get(request.decode(), 0)

    def set_health(self, request, context):
        name, status = json.loads(request)
        self.health.set(name, status)
        return b""


UNARY = ("echo", "facts", "fail", "wait", "ended_calls", "set_health")
KINDS = {
    **{name: grpc.unary_unary_rpc_method_handler for name in UNARY},
    **{name: grpc.unary_stream_rpc_method_handler for name in ("count", "fail_late", "flood")},
    "sum": grpc.stream_unary_rpc_method_handler,
    "talk": grpc.stream_stream_rpc_method_handler,
}


def code_of(number):
    return next(code for code in grpc.StatusCode if code.value[0] == number)


def serve(key, certificate):
    service = Service()
    server = grpc.server(futures.ThreadPoolExecutor(THREADS), options=OPTIONS)
    handlers = {name: kind(getattr(service, name)) for name, kind in KINDS.items()}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    health_pb2_grpc.add_HealthServicer_to_server(service.health, server)
    service.health.set("", health_pb2.HealthCheckResponse.SERVING)
    pair = open(key, "rb").read(), open(certificate, "rb").read()
    ports = [
        server.add_insecure_port("127.0.0.1:0"),
        server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair])),
    ]
    server.start()
    print(*ports, flush=True)
    sys.stdin.read()
    server.stop(0)


def expect(found, wanted):
    if found != wanted:
        raise ValueError(f"{found!r:.200} instead of {wanted!r:.200}")


def wait_for(what, look):
    until = time.monotonic() + WAIT_SECONDS
    while not look():
        if time.monotonic() > until:
            raise ValueError(f"waited in vain: {what}")
        time.sleep(0.02)


class Client:
    """A channel through the proxy, with a method for each of the service's."""

    def __init__(self, name, port, root):
        self.name, at = name, f"127.0.0.1:{port}"
        if name.startswith("tls "):
            credentials = grpc.ssl_channel_credentials(open(root, "rb").read())
            self.channel = grpc.secure_channel(at, credentials, OPTIONS)
        else:
            self.channel = grpc.insecure_channel(at, OPTIONS)

    def call(self, method, request, kind="unary_unary", service=SERVICE, **more):
        more.setdefault("timeout", WAIT_SECONDS)
        return getattr(self.channel, kind)(f"/{service}/{method}")(request, **more)

    def error(self, *call, **more):
        """The error that a call ends with."""
        try:
            answer = self.call(*call, **more)
            list(answer) if hasattr(answer, "__next__") else None
        except grpc.RpcError as error:
            return error
        raise ValueError(f"{call} did not fail")

    def has_ended(self, name):
        return self.call("ended_calls", name.encode()) == b"1"


def unary(client):
    for size in (0, 1, 1000, 16_383, 65_535, 65_536, 300_000):
        expect(client.call("echo", b"y" * size), b"y" * size)
    _, call = client.channel.unary_unary(f"/{SERVICE}/echo").with_call(b"", timeout=WAIT_SECONDS)
    first, last = dict(call.initial_metadata()), dict(call.trailing_metadata())
    expect((first["x-initial"], first["x-initial-bin"]), ("first", bytes(range(256))))
    expect((last["x-trailing"], last["x-trailing-bin"]), ("last", b"\0\xff"))
    expect((call.code(), call.details()), (grpc.StatusCode.OK, ""))


def metadata(client):
    sent = (("x-text", "a b"), ("x-raw-bin", bytes(range(256))))
    facts = json.loads(client.call("facts", b"", metadata=sent))["metadata"]
    expect((facts["x-text"], facts["x-raw-bin"]), ("a b", str(bytes(range(256)))))


def large_message(client):
    message = bytes(range(256)) * (LARGE_BYTES // 256)
    expect(client.call("echo", message) == message, True)


def server_stream(client):
    for count, size in ((0, 0), (1, 0), (1000, 100), (5, 1 << 20)):
        came = list(client.call("count", json.dumps([count, size]).encode(), "unary_stream"))
        expect(came, [b"%d," % number + b"x" * size for number in range(count)])


def client_stream(client):
    for count, size in ((0, 0), (1, 0), (1000, 100), (5, 1 << 20)):
        sent = (b"z" * size for _ in range(count))
        expect(client.call("sum", sent, "stream_unary"), b"%d %d" % (count, count * size))


class Talk:
    """A stream both ways, of which the client says the next word only after the answer."""

    def __init__(self, client):
        self.words = queue.Queue()
        self.answers = client.call("talk", iter(self.words.get, None), "stream_stream")

    def turns(self, count):
        for number in range(count):
            self.words.put(b"%d" % number)
            expect(next(self.answers), b"re: %d" % number)

    def end(self):
        self.words.put(None)
        expect(list(self.answers), [])
        expect(self.answers.code(), grpc.StatusCode.OK)


def both_ways(client):
    talks = [Talk(client) for _ in range(8)]
    for _ in range(5):
        for talk in talks:
            talk.turns(4)
    for talk in talks:
        talk.end()


def many_at_once(client):
    with futures.ThreadPoolExecutor(THREADS) as pool:
        sent = [b"%d" % number * 1000 for number in range(500)]
        expect(list(pool.map(lambda one: client.call("echo", one), sent)), sent)


def statuses(client):
    for number in range(1, 17):
        error = client.error("fail", b"%d" % number)
        expect((error.code(), error.details()), (code_of(number), DETAILS))
        expect(dict(error.trailing_metadata())["x-why"], "because")
    expect(client.error("nothing", b"").code(), grpc.StatusCode.UNIMPLEMENTED)
    expect(client.error("echo", b"", service="nobody").code(), grpc.StatusCode.UNAVAILABLE)


def a_status_behind_messages(client):
    answers = client.call("fail_late", b"", "unary_stream")
    expect((next(answers), next(answers)), (b"1", b"2"))
    expect(client.error("fail_late", b"", "unary_stream").code(), grpc.StatusCode.DATA_LOSS)


def deadline(client):
    remaining = json.loads(client.call("facts", b"", timeout=77))["remaining"]
    # Clients round it up.
    expect(0 < remaining < 78, True)
    name = f"late {client.name}"
    expect(client.error("wait", name.encode(), timeout=0.3).code(),
           grpc.StatusCode.DEADLINE_EXCEEDED)
    wait_for("the service learns of a deadline", lambda: client.has_ended(name))


def cancel(client):
    name = f"cancelled {client.name}"
    call = client.channel.unary_unary(f"/{SERVICE}/wait").future(name.encode())
    # Calls are taken in their order.
    client.call("echo", b"")
    call.cancel()
    expect(call.code(), grpc.StatusCode.CANCELLED)
    wait_for("the service learns of a cancelled call", lambda: client.has_ended(name))
    name = f"stopped {client.name}"
    answers = client.call("flood", name.encode(), "unary_stream")
    for _ in range(20):
        expect(len(next(answers)), 10_000)
    answers.cancel()
    wait_for("the service learns of a cancelled stream", lambda: client.has_ended(name))


def compressed(client):
    message = b"turnpike " * 50_000
    echo = client.channel.unary_unary(f"/{SERVICE}/echo")
    for kind in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        expect(echo(message, timeout=WAIT_SECONDS, compression=kind), message)


def health_check(client):
    stub = health_pb2_grpc.HealthStub(client.channel)
    known = health_pb2.HealthCheckResponse
    expect(stub.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_SECONDS).status, known.SERVING)
    name = f"shop {client.name}"
    request = health_pb2.HealthCheckRequest(service=name)
    watched = stub.Watch(request, timeout=WAIT_SECONDS)
    expect(next(watched).status, known.SERVICE_UNKNOWN)
    for status in (known.SERVING, known.NOT_SERVING):
        client.call("set_health", json.dumps([name, status]).encode())
        expect(next(watched).status, status)
    watched.cancel()


def reload(client):
    """Streams go on through a reload, new calls see the new configuration, and none fails."""
    talk = Talk(client)
    talk.turns(10)
    word = client.name.replace(" ", "-")
    rounds = lambda: json.loads(client.call("facts", b""))["metadata"]["x-round"]
    print("reload", word, flush=True)
    wait_for("the new configuration", lambda: rounds() == word)
    talk.turns(100)
    talk.end()


CASES = (unary, metadata, large_message, server_stream, client_stream, both_ways, many_at_once,
         statuses, a_status_behind_messages, deadline, cancel, compressed, health_check, reload)


def judge(root, ways):
    count = failed = 0
    for name, port in (way.rsplit("=", 1) for way in ways):
        client = Client(name, port, root)
        for case in CASES:
            count += 1
            try:
                case(client)
            except Exception as error:
                failed += 1
                print(f"{name}, {case.__name__}: {type(error).__name__} {error}", flush=True)
        client.channel.close()
    print(f"{count - failed} of {count} cases of gRPC are right", flush=True)
    return 1 if failed or not count else 0


if sys.argv[1] == "serve":
    serve(*sys.argv[2:])
else:
    sys.exit(judge(sys.argv[2], sys.argv[3:]))
