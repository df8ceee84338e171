// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// SYN cookies (RFC 4987 section 3.6): the first sequence number of a connection of ours is a hash,
// so that nothing has to be kept until the client has shown that it receives our segments.
//
//   our first number = the client's first number + one of four hashes (addresses, ports, minute):
//   the one for the client's maximum segment size
//
// All bits of a number are compared: one that is a byte or two off belongs to a connection that
// the kernel has, or to none.
//
// Adding the client's number makes the difference of both the same in every segment of the
// handshake, and near it in those behind a short answer: so we recognise our connections without
// any state. Options that cannot be kept in the number (window scale, SACK) are in the lowest bits
// of the timestamp that the client echoes (RFC 7323), as in the kernel's own cookies.
#pragma once

#include "packet.h"

// How long a client may take to send its request, in units of 64 s: this one and the one before.
#define COOKIE_PERIOD_SHIFT 36
#define COOKIE_PERIODS 2

// Usual maximum segment sizes: of any IPv4 path, of any IPv6 path, of PPPoE, of Ethernet.
#define SEGMENT_SIZES 4
#define SEGMENT_SIZE_0 536
#define SEGMENT_SIZE_1 1220
#define SEGMENT_SIZE_2 1440
#define SEGMENT_SIZE_3 1460

INLINE u32 segment_size(u32 number)
{
	switch (number) {
	case 0:
		return SEGMENT_SIZE_0;
	case 1:
		return SEGMENT_SIZE_1;
	case 2:
		return SEGMENT_SIZE_2;
	default:
		return SEGMENT_SIZE_3;
	}
}

// The largest of these sizes that is not above the client's.
INLINE u32 segment_size_number(u32 size)
{
	if (size >= SEGMENT_SIZE_3)
		return 3;
	if (size >= SEGMENT_SIZE_2)
		return 2;
	return size >= SEGMENT_SIZE_1;
}

SHARED u64 cookie_hash(const struct settings *settings, const struct segment *segment, u64 period)
{
	struct siphash hash;
	u32 ports = (u32)segment->source_port << 16 | segment->destination_port;
	siphash_begin(&hash, &settings->cookie_key);
	if (segment->is_ipv6) {
		siphash_word(&hash, segment->source[0]);
		siphash_word(&hash, segment->destination[0]);
	}
	siphash_word(&hash, segment->source[1]);
	siphash_word(&hash, segment->destination[1]);
	siphash_word(&hash, period << 32 | ports);
	return siphash_end(&hash, segment->is_ipv6 ? 40 : 24);
}

// The hash for one of the segment sizes: the halves of the hash are the first of the four, and the
// distance between them.
INLINE u32 cookie_number(u64 hash, u32 size_number)
{
	return (u32)hash + size_number * (u32)(hash >> 32);
}

INLINE u64 cookie_period(const struct segment *segment)
{
	return segment->now_ns >> COOKIE_PERIOD_SHIFT;
}

// What a segment's numbers say of its connection.
enum relation {
	// It did not begin with a cookie of ours, or that is too old.
	RELATION_NONE,
	// It is the first behind the handshake.
	RELATION_FIRST,
	// It is near: one that answers what we have sent.
	RELATION_LATER,
};

struct cookie {
	enum relation relation;
	u32 segment_size;
};

// Both numbers of a segment move on by what each side has sent: a request and an answer, of one
// segment each, and a FIN.
#define COOKIE_NEAR (ANSWER_BYTES_MAX + 2)

INLINE void check_cookie(const struct settings *settings, const struct segment *segment,
			 struct cookie *cookie)
{
	u32 difference = segment->acknowledgement - segment->sequence;
	u64 period = cookie_period(segment);
	cookie->relation = RELATION_NONE;
	for (u32 age = 0; age < COOKIE_PERIODS; age++) {
		u64 hash = cookie_hash(settings, segment, period - age);
		for (u32 number = 0; number < SEGMENT_SIZES; number++) {
			u32 distance = difference - cookie_number(hash, number);
			if (!distance) {
				cookie->relation = RELATION_FIRST;
				cookie->segment_size = segment_size(number);
				return;
			}
			if (distance + COOKIE_NEAR <= 2 * COOKIE_NEAR)
				cookie->relation = RELATION_LATER;
		}
		if (cookie->relation == RELATION_LATER)
			return;
	}
}
