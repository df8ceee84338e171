// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Finds the answer to a request in the shared memory, and puts it into the frame.
#pragma once

#include "reply.h"

// Bytes in front of a frame that the kernel does not give away: its own note on the frame.
#define HEAD_ROOM_KEPT 64
#define HEAD_ROOM (256 - HEAD_ROOM_KEPT)

// A full barrier: what was read before stays before (the writer has one too).
INLINE u64 version_of(struct answer *answer)
{
	return __sync_fetch_and_add(&answer->version, 0);
}

// The word of a host or target at `at`, of a text that has `bytes` bytes from `start` on.
INLINE u64 key_word(const struct reading *reading, u32 start, u32 bytes, u32 at)
{
	return first_bytes(word_at(reading, start + at), bytes - at);
}

INLINE u64 key_digest(const struct settings *settings, const struct segment *segment,
		      const struct reading *reading)
{
	const struct request *request = &reading->request;
	struct siphash hash;
	siphash_begin(&hash, &settings->digest_key);
	siphash_word(&hash, segment->destination[0]);
	siphash_word(&hash, segment->destination[1]);
	siphash_word(&hash, (u64)segment->destination_port << 32 | request->is_head);
	for (u32 at = 0; at < HOST_BYTES_MAX; at += 8) {
		u32 bytes = FRESH(request->host_bytes);
		if (at >= bytes)
			break;
		siphash_word(&hash, key_word(reading, FRESH(request->host_start), bytes, at));
	}
	for (u32 at = 0; at < TARGET_BYTES_MAX; at += 8) {
		u32 bytes = FRESH(request->target_bytes);
		if (at >= bytes)
			break;
		siphash_word(&hash, key_word(reading, FRESH(request->target_start), bytes, at));
	}
	u64 digest = siphash_end(&hash, FRESH(request->host_bytes));
	return digest ? digest : 1;
}

SHARED bool has_key(struct answer *answer, const struct segment *segment,
		    const struct reading *reading)
{
	const struct request *request = &reading->request;
	if (answer->address[0] != segment->destination[0] ||
	    answer->address[1] != segment->destination[1] ||
	    answer->port != segment->destination_port ||
	    answer->host_bytes != request->host_bytes ||
	    answer->target_bytes != request->target_bytes ||
	    (answer->flags & ANSWER_TO_HEAD) != request->is_head)
		return false;
	for (u32 at = 0; at < HOST_BYTES_MAX; at += 8) {
		u32 bytes = FRESH(request->host_bytes);
		if (at >= bytes)
			break;
		if (FRESH(*(u64 *)(answer->host + at)) !=
		    key_word(reading, FRESH(request->host_start), bytes, at))
			return false;
	}
	for (u32 at = 0; at < TARGET_BYTES_MAX; at += 8) {
		u32 bytes = FRESH(request->target_bytes);
		if (at >= bytes)
			break;
		if (FRESH(*(u64 *)(answer->target + at)) !=
		    key_word(reading, FRESH(request->target_start), bytes, at))
			return false;
	}
	return true;
}

// The slot with the answer, and the version under which it has the key; NULL where there is none.
INLINE struct slot *find_slot(const struct settings *settings, const struct segment *segment,
			      const struct reading *reading, u64 *version)
{
	u64 digest = key_digest(settings, segment, reading);
	for (u32 way = 0; way < WAYS; way++) {
		u32 number = ((digest & settings->slot_mask) & ~(u64)(WAYS - 1)) + way;
		struct slot *slot = bpf_map_lookup_elem(&answers, &number);
		if (!slot || slot->answer.digest != digest)
			continue;
		*version = version_of(&slot->answer);
		if (has_key(&slot->answer, segment, reading))
			return slot;
	}
	return 0;
}

// Why an answer does not suit the request; COUNT_HITS: it does.
INLINE u32 judge(const struct settings *settings, const struct answer *answer,
		 const struct segment *segment, const struct reading *reading)
{
	if (answer->generation != settings->generation ||
	    answer->expires_ns <= segment->now_ns)
		return COUNT_MISS_EXPIRED;
	if (!reading->request.closes && !(answer->flags & ANSWER_CLOSES))
		return COUNT_MISS_KEPT_ALIVE;
	if (reading->request.accepts_coding && answer->flags & ANSWER_UNCODED)
		return COUNT_MISS_CODING;
	return COUNT_HITS;
}

// Whether the client takes so many bytes in one segment: by its window, and by the size that the
// SYN named, from which options are to be taken off (RFC 6691).
INLINE u32 judge_size(u32 bytes, const struct segment *segment, const struct cookie *cookie,
		      const struct timestamps *timestamps)
{
	u32 option_bytes = timestamps->present ? TIMESTAMP_BYTES : 0;
	if (bytes + option_bytes > cookie->segment_size)
		return COUNT_MISS_SEGMENT;
	if (bytes > (u32)segment->window << window_shift(timestamps))
		return COUNT_MISS_WINDOW;
	return COUNT_HITS;
}

// Makes the frame longer at its front, and moves the headers there.
INLINE bool grow_head(struct xdp_md *context, const struct segment *segment,
		      struct reading *reading, u32 bytes)
{
	u32 headers = segment->text_at;
	if (!bytes || bytes > HEAD_ROOM || headers > HEADERS_BYTES_MAX || headers < ETH_HLEN)
		return false;
	if (bpf_xdp_load_bytes(context, 0, reading->headers, headers) ||
	    bpf_xdp_adjust_head(context, -(int)bytes))
		return false;
	return !bpf_xdp_store_bytes(context, 0, reading->headers, headers);
}

// Makes the frame as long as the answer wants it. Drivers leave different room: behind the frame
// (a page, on most cards), or only in front of it (veth).
INLINE bool resize(struct xdp_md *context, const struct segment *segment, struct reading *reading,
		   u32 wanted)
{
	int more = (int)wanted - (int)(context->data_end - context->data);
	if (!more || !bpf_xdp_adjust_tail(context, more))
		return true;
	if (more <= 0)
		return false;
	return grow_head(context, segment, reading, more);
}
