// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// TCP options (RFC 9293 section 3.1, RFC 7323): those of a SYN, those that answer it, and the
// timestamp of every later segment.
#pragma once

#include "cookie.h"

#define OPTION_END 0
#define OPTION_NOTHING 1
#define OPTION_SEGMENT_SIZE 2
#define OPTION_WINDOW_SCALE 3
#define OPTION_MAY_SACK 4
#define OPTION_TIMESTAMP 8

// Largest shift of a window (RFC 7323 section 2.3).
#define WINDOW_SCALE_MAX 14
// The shift of our windows on connections that the lanes get, as Linux has it with its usual
// buffers; no window of ours is larger before the kernel says so.
#define OUR_WINDOW_SCALE 7

// What a timestamp of ours carries in its lowest bits until the client sends it back.
#define CARRIED_SCALE 0xf
#define CARRIED_NO_SCALE 0xf
#define CARRIED_MAY_SACK 0x10
#define CARRIED_BITS 0x3f

// The options of a SYN.
struct syn_options {
	u32 segment_size;
	u32 window_scale;
	bool may_sack;
	bool has_timestamp;
	u32 timestamp;
};

// The options of the answer to a SYN, in network order; zeros behind them end the list.
struct answered_options {
	u32 words[TCP_OPTIONS_BYTES_MAX / 4];
};

// The timestamps of a segment behind the SYN.
struct timestamps {
	bool present;
	u32 value;
	u32 echo;
};

// Our clock for timestamps, in milliseconds: Linux's own for connections without an offset, so that
// time goes on when the kernel takes a connection over.
INLINE u32 timestamp_at(u64 now_ns)
{
	return now_ns / 1000000;
}

INLINE u32 text_u16(const struct reading *reading, u32 at)
{
	return (u32)byte_at(reading, at) << 8 | byte_at(reading, at + 1);
}

// The loop over the options; `at` and `end` of the reading say how far it is.
struct option_loop {
	struct reading *reading;
	struct syn_options *options;
};

INLINE void take_option(struct option_loop *loop, u32 kind, u32 length)
{
	struct reading *reading = loop->reading;
	struct syn_options *options = loop->options;
	u32 value_at = reading->at + 2;
	if (kind == OPTION_SEGMENT_SIZE && length == 4) {
		options->segment_size = text_u16(reading, value_at);
	} else if (kind == OPTION_WINDOW_SCALE && length == 3) {
		u32 scale = byte_at(reading, value_at);
		options->window_scale = scale < WINDOW_SCALE_MAX ? scale : WINDOW_SCALE_MAX;
	} else if (kind == OPTION_MAY_SACK && length == 2) {
		options->may_sack = true;
	} else if (kind == OPTION_TIMESTAMP && length == 10) {
		options->has_timestamp = true;
		options->timestamp =
			text_u16(reading, value_at) << 16 | text_u16(reading, value_at + 2);
	}
}

// One step of the loop; returns whether it is over.
static long option_step(u64 number, struct option_loop *loop)
{
	struct reading *reading = loop->reading;
	u32 kind = byte_at(reading, reading->at);
	u32 length = byte_at(reading, reading->at + 1);
	if (reading->at >= reading->end || kind == OPTION_END)
		return 1;
	if (kind == OPTION_NOTHING) {
		reading->at++;
		return 0;
	}
	if (length < 2 || reading->at + length > reading->end) {
		reading->refusal = REFUSAL_MALFORMED;
		return 1;
	}
	take_option(loop, kind, length);
	reading->at += length;
	return 0;
}

// Reads the options that stand in the text; `false`: one is malformed.
INLINE bool read_syn_options(struct reading *reading, u32 bytes, struct syn_options *options)
{
	struct option_loop loop = { .reading = reading, .options = options };
	reading->at = 0;
	reading->end = bytes;
	reading->refusal = REFUSAL_NONE;
	options->window_scale = CARRIED_NO_SCALE;
	bpf_loop(TCP_OPTIONS_BYTES_MAX, option_step, &loop, 0);
	return reading->refusal == REFUSAL_NONE;
}

// A timestamp that carries the options of a SYN; it is not ahead of our clock.
INLINE u32 carrying_timestamp(const struct syn_options *options, u64 now_ns)
{
	u32 now = timestamp_at(now_ns);
	u32 carried = options->window_scale | (options->may_sack ? CARRIED_MAY_SACK : 0);
	u32 timestamp = (now & ~CARRIED_BITS) | carried;
	return timestamp > now ? timestamp - CARRIED_BITS - 1 : timestamp;
}

// Answers options with ours. They take no more room than the client's: each is there only if the
// client has sent it.
INLINE void answer_options(const struct syn_options *options, u32 our_segment_size, u64 now_ns,
			   struct answered_options *answered)
{
	answered->words[0] =
		bpf_htonl(OPTION_SEGMENT_SIZE << 24 | 4 << 16 | (our_segment_size & 0xffff));
	if (!options->has_timestamp)
		return;
	u32 first = options->may_sack ? OPTION_MAY_SACK << 24 | 2 << 16
				      : OPTION_NOTHING << 24 | OPTION_NOTHING << 16;
	answered->words[1] = bpf_htonl(first | OPTION_TIMESTAMP << 8 | 10);
	answered->words[2] = bpf_htonl(carrying_timestamp(options, now_ns));
	answered->words[3] = bpf_htonl(options->timestamp);
	if (options->window_scale != CARRIED_NO_SCALE)
		answered->words[4] = bpf_htonl(OPTION_NOTHING << 24 | OPTION_WINDOW_SCALE << 16 |
					       3 << 8 | OUR_WINDOW_SCALE);
}

// The form in which timestamps are sent (RFC 7323 appendix A): two fillers in front.
#define TIMESTAMP_HEAD (OPTION_NOTHING << 24 | OPTION_NOTHING << 16 | OPTION_TIMESTAMP << 8 | 10)
#define TIMESTAMP_BYTES 12

// Reads the timestamps of a segment; `false`: it has other options, which are the kernel's.
INLINE bool read_timestamps(void *data, void *end, const struct segment *segment,
			    struct timestamps *timestamps)
{
	u32 bytes = segment->text_at - segment->tcp_at - TCP_HEADER_BYTES;
	u64 tcp_at = segment->tcp_at;
	if (!bytes)
		return true;
	if (!is_bounded(&tcp_at))
		return false;
	u32 *words = data + tcp_at + TCP_HEADER_BYTES;
	if (bytes != TIMESTAMP_BYTES || (void *)(words + 3) > end ||
	    words[0] != bpf_htonl(TIMESTAMP_HEAD))
		return false;
	timestamps->present = true;
	timestamps->value = bpf_ntohl(words[1]);
	timestamps->echo = bpf_ntohl(words[2]);
	return true;
}

// How far the client's windows are shifted on a connection of ours.
INLINE u32 window_shift(const struct timestamps *timestamps)
{
	u32 scale = timestamps->echo & CARRIED_SCALE;
	return timestamps->present && scale != CARRIED_NO_SCALE ? scale : 0;
}
