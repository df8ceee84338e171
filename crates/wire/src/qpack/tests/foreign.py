"""ls-qpack, by pylsqpack: encodes the fields of a line, or decodes its section; all in hex."""

import sys

import pylsqpack

encoder = pylsqpack.Encoder()
encoder.apply_settings(max_table_capacity=0, blocked_streams=0)
decoder = pylsqpack.Decoder(0, 0)
for number, line in enumerate(sys.stdin):
    verb, _, text = line.strip().partition(" ")
    if verb == "encode":
        pairs = [pair.split(":") for pair in text.split(",")]
        fields = [(bytes.fromhex(name), bytes.fromhex(value)) for name, value in pairs]
        instructions, section = encoder.encode(4 * number, fields)
        assert not instructions, instructions
        print(section.hex())
    else:
        _, fields = decoder.feed_header(4 * number, bytes.fromhex(text))
        print(",".join(f"{name.hex()}:{value.hex()}" for name, value in fields))
