"""A collector that knows nothing of Turnpike: gRPC's own server and OpenTelemetry's own messages."""
import json, sys
from concurrent import futures
import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc

class Collector(rpc.TraceServiceServicer):
    def Export(self, request, context):
        metadata = dict(context.invocation_metadata())
        for resource in request.resource_spans:
            own = {a.key: a.value.string_value for a in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    print(json.dumps({
                        "trace": span.trace_id.hex(), "span": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(), "name": span.name, "kind": span.kind,
                        "state": span.trace_state, "start": span.start_time_unix_nano,
                        "end": span.end_time_unix_nano, "status": span.status.code,
                        "flags": span.flags, "scope": scope.scope.name,
                        "attributes": {a.key: str(a.value).strip() for a in span.attributes},
                        "resource": own, "key": metadata.get("x-key"),
                    }), flush=True)
        return service.ExportTraceServiceResponse()

server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
rpc.add_TraceServiceServicer_to_server(Collector(), server)
if len(sys.argv) == 3:
    pair = (open(sys.argv[1], "rb").read(), open(sys.argv[2], "rb").read())
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(0)
