// Puts loads on a server for `cargo xtask http2-clients`, by Node's http2:
//
//     node loads.mjs node PLAIN SECURE ROOT
//
// A line for each cell of the matrix says how it went.
import http2 from "node:http2";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const [, , , port] = process.argv;
const LARGE_BYTES = 128 << 20, MIDDLE_BYTES = 100_000, SMALL_BYTES = 600;
const STREAMS = 1000, AT_ONCE = 100, CANCELS = 3000, CANCELLING = 20, BURSTS = 3;
const PART = Buffer.alloc(1 << 20);
// Windows wider than a socket holds, as programs that download much set them.
const WINDOW_BYTES = 1 << 30;
const PING_EVERY_BYTES = 1 << 20;

const session = http2.connect(`http://127.0.0.1:${port}`, {
  settings: { initialWindowSize: WINDOW_BYTES },
});
let lost = null;
session.on("error", (error) => (lost = error));
session.on("goaway", (code) => (lost ??= new Error(`GOAWAY ${code}`)));
await new Promise((ready) => session.once("connect", ready));
session.setLocalWindowSize(WINDOW_BYTES);

// Ends with the number of bytes that came, or where `enough` says so.
function get(path, enough = () => false) {
  return new Promise((resolve, reject) => {
    if (lost) return reject(lost);
    const stream = session.request({ ":path": path });
    let bytes = 0, status = 0, isCancelled = false;
    stream.on("response", (headers) => (status = headers[":status"]));
    stream.on("data", (data) => {
      bytes += data.length;
      if (!isCancelled && enough(data.length)) {
        isCancelled = true;
        stream.close(http2.constants.NGHTTP2_CANCEL);
      }
    });
    stream.on("error", reject);
    stream.on("close", () => {
      if (lost) reject(lost);
      else if (status !== 200) reject(new Error(`status ${status}`));
      else resolve(bytes);
    });
  });
}

async function expect(path, size, enough) {
  const bytes = await get(path, enough);
  if (bytes !== size) throw new Error(`${bytes} bytes of ${path} instead of ${size}`);
}

async function parallel(times, width, work) {
  let left = times;
  const worker = async () => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: width }, worker));
}

async function download(before) {
  let bytes = 0;
  const measure = (length) => {
    bytes += length;
    if (bytes >= PING_EVERY_BYTES) {
      bytes = 0;
      session.ping(() => {});
    }
    return false;
  };
  let isOver = false;
  const large = expect(`${before}/large`, LARGE_BYTES, measure).finally(() => (isOver = true));
  while (!isOver) await expect("/600.html", SMALL_BYTES);
  await large;
}

async function upload(before) {
  const stream = session.request({
    ":method": "PUT",
    ":path": `${before}/put/node`,
    "content-length": LARGE_BYTES,
  });
  const status = new Promise((resolve, reject) => {
    stream.on("response", (headers) => resolve(headers[":status"]));
    stream.on("error", reject);
  });
  const parts = function* () {
    for (let sent = 0; sent < LARGE_BYTES; sent += PART.length) yield PART;
  };
  stream.resume();
  await pipeline(Readable.from(parts()), stream);
  const found = await status;
  if (found !== 201 && found !== 204) throw new Error(`status ${found}`);
  await expect("/put/node", LARGE_BYTES);
}

// Requests that are not answered, and cancelled at once.
async function burst() {
  const streams = Array.from({ length: AT_ONCE }, () => session.request({ ":path": "/silent" }));
  await new Promise((sent) => setTimeout(sent, 100));
  const closed = streams.map((one) => new Promise((done) => one.on("close", done)));
  streams.forEach((one) => one.close(http2.constants.NGHTTP2_CANCEL));
  await Promise.all(closed);
  await expect("/600.html", SMALL_BYTES);
}

const CELLS = {
  download: async () => {
    for (const before of ["", "/passed"]) await download(before);
  },
  streams: () => parallel(STREAMS, AT_ONCE, () => expect("/middle", MIDDLE_BYTES)),
  upload: async () => {
    for (const before of ["", "/passed"]) await upload(before);
  },
  cancel: () => parallel(CANCELS, CANCELLING, () => get("/large", () => true)),
  burst: async () => {
    for (let round = 0; round < BURSTS; round++) await burst();
  },
};

console.log("version", process.versions.node);
for (const [cell, work] of Object.entries(CELLS)) {
  try {
    await work();
    console.log(cell, "pass");
  } catch (error) {
    console.log(cell, "fail:", error.message);
  }
}
session.destroy();
