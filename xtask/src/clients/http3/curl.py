"""Asks a server what `cargo xtask http3-clients` wants to see, by the curl of curl_cffi:

    curl.py PORT KNOWN KEYS

PORT and KNOWN are ports, the second one wants certificates, and KEYS is the folder of the
certificates. A line for each cell of the matrix says how it went."""

import asyncio
import sys

from curl_cffi import AsyncSession, Curl, CurlHttpVersion, CurlOpt, Session

LARGE_BYTES, MIDDLE_BYTES, SMALL_BYTES = 32 << 20, 100_000, 600
PARALLEL, ROUNDS = 60, 10
# How long a transfer may take on a busy machine.
DEADLINE_SECONDS = 300

PORT, KNOWN, KEYS = sys.argv[1:]
AT = f"https://localhost:{PORT}"
COMMON = {
    "http_version": CurlHttpVersion.V3ONLY,
    "verify": f"{KEYS}/root.pem",
    "timeout": DEADLINE_SECONDS,
}


def pattern(size):
    block = bytes(range(251))
    return (block * (size // len(block) + 1))[:size]


def got(response, size=None, status=200):
    if response.status_code != status:
        raise ValueError(f"status {response.status_code} of {response.url}")
    if response.http_version != CurlHttpVersion.V3:
        raise ValueError(f"version {response.http_version} of {response.url}")
    if size is not None and len(response.content) != size:
        raise ValueError(f"{len(response.content)} bytes of {response.url}, not {size}")
    return response.content


def page():
    with Session(**COMMON) as session:
        text = got(session.get(AT + "/page"))
        if text != b"a page over HTTP/3.0":
            raise ValueError(f"{text}")


def download():
    async def both():
        async with AsyncSession(max_clients=2, **COMMON) as session:
            large = asyncio.create_task(session.get(AT + "/large"))
            while not large.done():
                got(await session.get(AT + "/600.html"), SMALL_BYTES)
            if got(await large) != pattern(LARGE_BYTES):
                raise ValueError("other bytes came")

    asyncio.run(both())


def upload():
    with Session(**COMMON) as session:
        for before in ["", "/passed"]:
            url = f"{AT}{before}/put/curl"
            answer = session.put(url, data=pattern(LARGE_BYTES))
            if answer.status_code not in (201, 204):
                raise ValueError(f"status {answer.status_code}")
            if got(session.get(url)) != pattern(LARGE_BYTES):
                raise ValueError("other bytes came back")


def ranges():
    with Session(**COMMON) as session:
        whole = pattern(LARGE_BYTES)
        for text, wanted in [
            ("0-0", whole[:1]),
            ("70000-199999", whole[70000:200000]),
            ("-100", whole[-100:]),
        ]:
            answer = session.get(AT + "/large", headers={"Range": f"bytes={text}"})
            if got(answer, status=206) != wanted:
                raise ValueError(f"other bytes of {text}")


def parallel():
    async def all_at_once():
        async with AsyncSession(max_clients=PARALLEL, **COMMON) as session:
            for _ in range(ROUNDS):
                asked = (session.get(AT + "/middle") for _ in range(PARALLEL))
                for answer in await asyncio.gather(*asked):
                    got(answer, MIDDLE_BYTES)

    asyncio.run(all_at_once())


def certificate():
    with Session(**COMMON) as session:
        url = f"https://localhost:{KNOWN}/facts"
        got(session.get(url), status=400)
        keys = (f"{KEYS}/client.pem", f"{KEYS}/client.key")
        with Session(cert=keys, **COMMON) as known:
            text = got(known.get(url))
        if b"verify=SUCCESS CN=client" not in text:
            raise ValueError(f"{text}")


def resumed():
    with Session(curl_options={CurlOpt.FRESH_CONNECT: 1}, **COMMON) as session:
        said = [got(session.get(AT + "/facts")) for _ in range(2)]
        if b"reused=." not in said[0] or b"reused=r" not in said[1]:
            raise ValueError(f"{said}")


print("version", Curl().version().decode().split("/")[1].split(" ")[0].split("-")[0])
for work in [page, download, upload, ranges, parallel, certificate, resumed]:
    try:
        work()
        print(work.__name__, "pass")
    except Exception as error:
        print(work.__name__, f"fail: {error!r}".replace("\n", " "))
