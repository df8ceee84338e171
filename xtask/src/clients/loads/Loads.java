import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Puts loads on a server for {@code cargo xtask http2-clients}, by grpc-java.
 *
 * <pre>java -cp 'LIBRARIES/*' Loads.java grpc-java PLAIN SECURE ROOT</pre>
 *
 * A line for each cell of the matrix says how it went.
 */
public class Loads {
  static final int WAIT_SECONDS = 300;
  static final int LARGE_BYTES = 128 << 20;
  static final int PART_BYTES = 1 << 20;
  static final int MIDDLE_BYTES = 100_000;
  static final int STREAMS = 1000;
  static final int AT_ONCE = 100;
  static final int CANCELS = 3000;
  static final int CANCELLING = 20;
  static final int BURSTS = 3;

  interface Work {
    void run() throws Exception;
  }

  final ManagedChannel channel;

  Loads(int port) {
    // It measures round trips by PINGs, as it does by default.
    channel = NettyChannelBuilder.forAddress("127.0.0.1", port)
        .usePlaintext()
        .proxyDetector(address -> null)
        .build();
  }

  static final MethodDescriptor.Marshaller<byte[]> BYTES = new MethodDescriptor.Marshaller<>() {
    @Override
    public InputStream stream(byte[] value) {
      return new ByteArrayInputStream(value);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException error) {
        throw new IllegalStateException(error);
      }
    }
  };

  static MethodDescriptor<byte[], byte[]> method(String name, MethodType kind) {
    return MethodDescriptor.<byte[], byte[]>newBuilder(BYTES, BYTES)
        .setType(kind)
        .setFullMethodName("turnpike.Judge/" + name)
        .build();
  }

  static CallOptions options() {
    return CallOptions.DEFAULT.withDeadlineAfter(WAIT_SECONDS, TimeUnit.SECONDS);
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static void expect(Object found, Object wanted) {
    if (!found.equals(wanted)) {
      throw new IllegalStateException(found + " instead of " + wanted);
    }
  }

  void small() {
    var echo = method("echo", MethodType.UNARY);
    byte[] answer = ClientCalls.blockingUnaryCall(channel, echo, options(), bytes("small"));
    expect(new String(answer, StandardCharsets.UTF_8), "small");
  }

  Iterator<byte[]> begin(String name, String message) {
    var kind = method(name, MethodType.SERVER_STREAMING);
    return ClientCalls.blockingServerStreamingCall(channel, kind, options(), bytes(message));
  }

  void count(int messages, int size) {
    var answers = begin("count", "[" + messages + ", " + size + "]");
    int came = 0;
    while (answers.hasNext()) {
      came += answers.next().length >= size ? 1 : 0;
    }
    expect(came, messages);
  }

  static void parallel(int times, int width, Work work) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(width);
    try {
      List<Future<Void>> all = new ArrayList<>();
      for (int number = 0; number < times; number++) {
        all.add(pool.submit(() -> {
          work.run();
          return null;
        }));
      }
      for (var one : all) {
        one.get();
      }
    } finally {
      pool.shutdownNow();
    }
  }

  void download() throws Exception {
    ExecutorService pool = Executors.newSingleThreadExecutor();
    try {
      var large = pool.submit(() -> count(LARGE_BYTES / PART_BYTES, PART_BYTES));
      while (!large.isDone()) {
        small();
      }
      large.get();
    } finally {
      pool.shutdownNow();
    }
  }

  void upload() throws Exception {
    var answer = new CompletableFuture<String>();
    ClientCall<byte[], byte[]> call =
        channel.newCall(method("sum", MethodType.CLIENT_STREAMING), options());
    call.start(new ClientCall.Listener<byte[]>() {
      @Override
      public void onMessage(byte[] message) {
        answer.complete(new String(message, StandardCharsets.UTF_8));
      }

      @Override
      public void onClose(Status status, Metadata trailers) {
        answer.complete(status.toString());
      }
    }, new Metadata());
    call.request(1);
    for (int sent = 0; sent < LARGE_BYTES; sent += PART_BYTES) {
      while (!call.isReady() && !answer.isDone()) {
        Thread.sleep(1);
      }
      call.sendMessage(new byte[PART_BYTES]);
    }
    call.halfClose();
    expect(answer.get(), LARGE_BYTES / PART_BYTES + " " + LARGE_BYTES);
  }

  void cancel() throws Exception {
    var context = Context.ROOT.withCancellation();
    context.call(() -> {
      expect(begin("flood", "loads").next().length, 10_000);
      return null;
    });
    context.cancel(null);
  }

  /** Begins calls that are not answered, and cancels all of them at once. */
  void burst() {
    for (int round = 0; round < BURSTS; round++) {
      var context = Context.ROOT.withCancellation();
      context.run(() -> {
        for (int number = 0; number < AT_ONCE; number++) {
          begin("wait", "loads");
        }
      });
      context.cancel(null);
    }
    small();
  }

  static void tell(String cell, Work work) {
    try {
      work.run();
      System.out.println(cell + " pass");
    } catch (Exception error) {
      System.out.println(cell + " fail: " + error.toString().replaceAll("\\s+", " "));
    }
  }

  public static void main(String[] arguments) {
    var loads = new Loads(Integer.parseInt(arguments[1]));
    tell("download", loads::download);
    tell("streams", () -> parallel(STREAMS, AT_ONCE, () -> loads.count(1, MIDDLE_BYTES)));
    tell("upload", loads::upload);
    tell("cancel", () -> parallel(CANCELS, CANCELLING, loads::cancel));
    tell("burst", loads::burst);
    loads.channel.shutdownNow();
  }
}
