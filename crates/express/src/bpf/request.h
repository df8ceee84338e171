// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Reads a request that stands whole in one segment (RFC 9112), strictly: whatever is not plain is
// refused, and then the lanes read it. A refusal is never an error.
//
// The same code is compiled into the BPF program and into a fuzz target of user space. It reads a
// copy of the segment, so that every index is bounded by a mask. All that changes in its loops is
// in that memory too (`struct reading`) and not on the stack: the verifier then takes every value
// for possible at once, in place of following the loops round by round.
#pragma once

#include "types.h"
#include "words.h"

// The most bytes of a segment that are read; a power of two, since indexes are masked.
#define TEXT_BYTES_MAX 2048
// The longest host and target that can be a key; `struct answer` has that much room for them.
#define HOST_BYTES_MAX 128
#define TARGET_BYTES_MAX 376
// The longest headers in front of a text: two VLAN tags, IPv6, TCP with timestamps.
#define HEADERS_BYTES_MAX 96
// Steps of the loop over the fields: each takes up to 8 bytes of a name, or VALUE_WORDS_MAX words of
// a value. A head of 1460 bytes in common fields needs about 100.
#define FIELD_STEPS_MAX 600
// A step costs more than a word; more than so many words are rare.
#define VALUE_WORDS_MAX 16

// Why a request is left to the lanes; 0 is none. counters.h has one counter for each.
enum refusal {
	REFUSAL_NONE,
	// Not GET or HEAD, as the start of TLS, HTTP/2 or a body.
	REFUSAL_METHOD,
	// Not a path of plain characters, or a long one.
	REFUSAL_TARGET,
	// Not HTTP/1.0 or HTTP/1.1.
	REFUSAL_VERSION,
	// The head does not end in this segment.
	REFUSAL_INCOMPLETE,
	// More stands behind the head: another request, or a body.
	REFUSAL_PIPELINED,
	// A field's name or value that is not plain text in one line.
	REFUSAL_MALFORMED,
	// A field that the answer may depend on: a condition, a range, a password, a cookie, a body.
	REFUSAL_FIELD,
	// No Host, two, or an odd one.
	REFUSAL_HOST,
};

// What a request asks for. Offsets are into the text.
struct request {
	u32 target_start;
	u32 target_bytes;
	u32 host_start;
	u32 host_bytes;
	bool is_head;
	bool is_http10;
	// Whether the client has the connection closed behind the answer (RFC 9112 section 9.6).
	bool closes;
	// Whether Accept-Encoding is there.
	bool accepts_coding;
	bool has_connection;
};

// What kind of field a line is.
enum field {
	FIELD_OTHER,
	FIELD_HOST,
	FIELD_CONNECTION,
	FIELD_ACCEPT_ENCODING,
	FIELD_REFUSED,
};

// Names are compared as three words; a longer one cannot be in the table.
#define NAME_WORDS 3

struct field_name {
	union {
		char text[NAME_WORDS * 8];
		u64 words[NAME_WORDS];
	};
	u64 field;
};

// Fields with a meaning for what is answered here. All others may have any value: an answer is
// published only where nothing of the configuration looks at the request's fields.
static const struct field_name FIELD_NAMES[] = {
	{ { "host" }, FIELD_HOST },
	{ { "connection" }, FIELD_CONNECTION },
	{ { "accept-encoding" }, FIELD_ACCEPT_ENCODING },
	// Bodies and framing: RFC 9112 section 6, RFC 9110 sections 6.6.2 and 10.1.1.
	{ { "content-length" }, FIELD_REFUSED },
	{ { "transfer-encoding" }, FIELD_REFUSED },
	{ { "expect" }, FIELD_REFUSED },
	{ { "trailer" }, FIELD_REFUSED },
	{ { "te" }, FIELD_REFUSED },
	// Another protocol: RFC 9110 section 7.8.
	{ { "upgrade" }, FIELD_REFUSED },
	{ { "http2-settings" }, FIELD_REFUSED },
	// Parts and conditions: RFC 9110 sections 13 and 14.
	{ { "range" }, FIELD_REFUSED },
	{ { "if-match" }, FIELD_REFUSED },
	{ { "if-none-match" }, FIELD_REFUSED },
	{ { "if-modified-since" }, FIELD_REFUSED },
	{ { "if-unmodified-since" }, FIELD_REFUSED },
	{ { "if-range" }, FIELD_REFUSED },
	// Who asks: RFC 9110 section 11, RFC 6265.
	{ { "authorization" }, FIELD_REFUSED },
	{ { "proxy-authorization" }, FIELD_REFUSED },
	{ { "cookie" }, FIELD_REFUSED },
	// Old clients of proxies; its meaning is not agreed on.
	{ { "proxy-connection" }, FIELD_REFUSED },
};

#define FIELD_NAME_COUNT (sizeof(FIELD_NAMES) / sizeof(FIELD_NAMES[0]))

// A segment's text and how far it is read. The word behind the text can be read, and is never used.
struct reading {
	u8 text[TEXT_BYTES_MAX + 8];
	struct request request;
	// The loop over the fields.
	u32 at;
	u32 end;
	u32 value_start;
	u32 name_words;
	u64 name[NAME_WORDS];
	u32 field;
	u32 refusal;
	bool in_value;
	bool ended;
	// The frame's headers, on their way to its new front.
	u8 headers[HEADERS_BYTES_MAX];
};

INLINE u64 word_at(const struct reading *reading, u32 at)
{
	return *(const u64 *)(reading->text + (at & (TEXT_BYTES_MAX - 1)));
}

INLINE u8 byte_at(const struct reading *reading, u32 at)
{
	return reading->text[at & (TEXT_BYTES_MAX - 1)];
}

INLINE u32 field_of(const struct reading *reading)
{
	if (reading->name_words > NAME_WORDS)
		return FIELD_OTHER;
	for (u32 row = 0; row < FIELD_NAME_COUNT; row++) {
		const struct field_name *known = &FIELD_NAMES[row];
		if (reading->name[0] == known->words[0] && reading->name[1] == known->words[1] &&
		    reading->name[2] == known->words[2])
			return known->field;
	}
	return FIELD_OTHER;
}

// "close" and "keep-alive" alone are understood, in any case.
INLINE u32 take_connection(struct reading *reading, u32 bytes)
{
	u64 first = word_at(reading, reading->value_start) | EACH(0x20);
	u64 second = word_at(reading, reading->value_start + 8) | EACH(0x20);
	if (reading->request.has_connection)
		return REFUSAL_FIELD;
	reading->request.has_connection = true;
	if (bytes == 5 && first_bytes(first, 5) == 0x65736f6c63ULL) {
		reading->request.closes = true;
		return REFUSAL_NONE;
	}
	if (bytes == 10 && first == 0x696c612d7065656bULL && first_bytes(second, 2) == 0x6576) {
		// HTTP/1.0 with keep-alive asks for a field in the answer.
		reading->request.closes = false;
		return reading->request.is_http10 ? REFUSAL_FIELD : REFUSAL_NONE;
	}
	return REFUSAL_FIELD;
}

INLINE u32 take_host(struct reading *reading, u32 bytes)
{
	struct request *request = &reading->request;
	if (request->host_bytes || !bytes || bytes > HOST_BYTES_MAX)
		return REFUSAL_HOST;
	request->host_start = reading->value_start;
	request->host_bytes = bytes;
	return REFUSAL_NONE;
}

// A line has ended: its value is from value_start up to `end`.
INLINE u32 take_field(struct reading *reading, u32 end)
{
	if (reading->field == FIELD_OTHER)
		return REFUSAL_NONE;
	if (reading->field == FIELD_ACCEPT_ENCODING) {
		reading->request.accepts_coding = true;
		return REFUSAL_NONE;
	}
	if (reading->field == FIELD_REFUSED)
		return REFUSAL_FIELD;
	// One space in front of the value, and none behind it, is how clients write it.
	if (byte_at(reading, reading->value_start) == ' ')
		reading->value_start++;
	u32 bytes = end - reading->value_start;
	if (bytes > HOST_BYTES_MAX || byte_at(reading, reading->value_start) == ' ' ||
	    byte_at(reading, end - 1) == ' ')
		return REFUSAL_MALFORMED;
	if (reading->field == FIELD_HOST)
		return take_host(reading, bytes);
	return take_connection(reading, bytes);
}

// Takes up to 8 bytes of a name: letters, digits and "-" up to a colon.
INLINE u32 step_in_name(struct reading *reading)
{
	u64 word = word_at(reading, reading->at);
	if (!reading->name_words && first_bytes(word, 2) == 0x0a0d) {
		reading->ended = true;
		return reading->at + 2 == reading->end ? REFUSAL_NONE : REFUSAL_PIPELINED;
	}
	u64 colons = at_least(~(word ^ EACH(':')) & EACH(0x7f), 0x7f) & ~word;
	u32 taken = bytes_before(colons);
	u64 name = first_bytes(word, taken);
	// What is not of the name is judged as a letter.
	u64 judged = name | (EACH('a') & ~first_bytes(~0ULL, taken));
	if (judged & HIGH_BITS)
		return REFUSAL_MALFORMED;
	u64 lower = judged | (between(judged, 'A', 'Z') >> 2);
	if ((between(lower, 'a', 'z') | between(lower, '0', '9') | between(lower, '-', '-')) !=
	    HIGH_BITS)
		return REFUSAL_MALFORMED;
	if (reading->name_words == 0)
		reading->name[0] = first_bytes(lower, taken);
	else if (reading->name_words == 1)
		reading->name[1] = first_bytes(lower, taken);
	else if (reading->name_words == 2)
		reading->name[2] = first_bytes(lower, taken);
	if (taken || !reading->name_words)
		reading->name_words++;
	reading->at += taken;
	if (taken == 8)
		return REFUSAL_NONE;
	if (!reading->name[0])
		return REFUSAL_MALFORMED;
	reading->at++;
	reading->field = field_of(reading);
	reading->value_start = reading->at;
	reading->in_value = true;
	return REFUSAL_NONE;
}

INLINE void begin_line(struct reading *reading)
{
	reading->name_words = 0;
	reading->name[0] = reading->name[1] = reading->name[2] = 0;
	reading->in_value = false;
}

// The high bit of each byte that is neither visible ASCII nor a space.
INLINE u64 odd_in_value(u64 word)
{
	u64 seven_bits = word & ~HIGH_BITS;
	u64 is_text = (seven_bits | HIGH_BITS) - EACH(' ');
	u64 is_delete = seven_bits + EACH(1);
	return (word | ~is_text | is_delete) & HIGH_BITS;
}

// Takes some words of a value: visible ASCII and spaces up to CR LF.
INLINE u32 step_in_value(struct reading *reading)
{
	u32 at = reading->at;
	u64 odd = 0;
	for (u32 words = 0; words < VALUE_WORDS_MAX; words++) {
		odd = odd_in_value(word_at(reading, at));
		if (odd)
			break;
		at += 8;
	}
	if (odd)
		at += bytes_before(odd);
	reading->at = at;
	if (!odd)
		return REFUSAL_NONE;
	if (first_bytes(word_at(reading, reading->at), 2) != 0x0a0d)
		return reading->at + 1 >= reading->end ? REFUSAL_INCOMPLETE : REFUSAL_MALFORMED;
	u32 refusal = take_field(reading, reading->at);
	reading->at += 2;
	begin_line(reading);
	return refusal;
}

// The loop's context has to be on the stack.
struct field_loop {
	struct reading *reading;
};

// One step of the loop; returns whether it is over.
static long field_step(u64 number, struct field_loop *loop)
{
	struct reading *reading = loop->reading;
	if (reading->at >= reading->end) {
		reading->refusal = REFUSAL_INCOMPLETE;
		return 1;
	}
	reading->refusal = reading->in_value ? step_in_value(reading) : step_in_name(reading);
	if (reading->at > reading->end)
		reading->refusal = REFUSAL_INCOMPLETE;
	return reading->ended || reading->refusal != REFUSAL_NONE;
}

INLINE u32 read_fields(struct reading *reading, u32 at)
{
	struct field_loop loop = { .reading = reading };
	reading->at = at;
	reading->ended = false;
	begin_line(reading);
	bpf_loop(FIELD_STEPS_MAX, field_step, &loop, 0);
	if (reading->refusal)
		return reading->refusal;
	if (!reading->ended)
		return REFUSAL_INCOMPLETE;
	return reading->request.host_bytes ? REFUSAL_NONE : REFUSAL_HOST;
}

// The path and query, as written: visible ASCII up to a space. A fragment has no place in a
// request, and a backslash is read differently by different servers.
INLINE u32 read_target(struct reading *reading)
{
	struct request *request = &reading->request;
	u32 start = request->target_start;
	u32 bytes = 0;
	for (u32 at = 0; at < TARGET_BYTES_MAX; at += 8) {
		u64 word = word_at(reading, start + at);
		u64 seven_bits = word & ~HIGH_BITS;
		u64 odd = (word & HIGH_BITS) | (at_least(seven_bits, 0x21) ^ HIGH_BITS) |
			  at_least(seven_bits, 0x7f) | between(seven_bits, '#', '#') |
			  between(seven_bits, '\\', '\\');
		bytes = at + bytes_before(odd);
		if (odd)
			break;
	}
	request->target_bytes = bytes;
	if (!bytes || bytes >= TARGET_BYTES_MAX || byte_at(reading, start) != '/' ||
	    byte_at(reading, start + bytes) != ' ')
		return REFUSAL_TARGET;
	return REFUSAL_NONE;
}

// Reads the request of `bytes` bytes that stands in the text.
INLINE u32 read_request(struct reading *reading, u32 bytes)
{
	struct request *request = &reading->request;
	u64 first = word_at(reading, 0);
	__builtin_memset(request, 0, sizeof(*request));
	reading->end = bytes;
	request->is_head = first_bytes(first, 5) == 0x2044414548ULL;
	if (!request->is_head && first_bytes(first, 4) != 0x20544547)
		return REFUSAL_METHOD;
	request->target_start = request->is_head ? 5 : 4;
	u32 refusal = read_target(reading);
	if (refusal)
		return refusal;
	u32 at = request->target_start + request->target_bytes + 1;
	u64 version = word_at(reading, at);
	request->is_http10 = version == 0x302e312f50545448ULL;
	if (!request->is_http10 && version != 0x312e312f50545448ULL)
		return REFUSAL_VERSION;
	request->closes = request->is_http10;
	if (first_bytes(word_at(reading, at + 8), 2) != 0x0a0d)
		return REFUSAL_VERSION;
	return read_fields(reading, at + 10);
}
