// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Samples of requests that were answered here, for access logs: some are drawn by lot, and the
// serving process reads them from a ring buffer. A request that is not drawn costs a comparison.
#pragma once

#include "packet.h"

// The most samples of a CPU in about a second: each becomes a line that a lane writes.
#define SAMPLES_PER_SECOND_MAX 200
// Units of about a second.
#define SAMPLE_SECOND_SHIFT 30

// Whether a request is drawn. Its number is our cookie's, which no client can choose; the key keeps
// clients from telling which ones are drawn.
INLINE bool is_drawn(const struct settings *settings, const struct segment *segment, u32 flags)
{
	u32 chance = flags >> ANSWER_CHANCE_SHIFT;
	if (!chance)
		return false;
	u32 number = segment->acknowledgement ^ (u32)settings->digest_key.second;
	// Fibonacci hashing: the multiplier is 2^32 divided by the golden ratio.
	return number * 0x9e3779b1U >> ANSWER_CHANCE_SHIFT <= chance;
}

INLINE bool is_over_limit(const struct segment *segment)
{
	u32 zero = 0;
	struct sampling *own = bpf_map_lookup_elem(&sampling, &zero);
	if (!own)
		return true;
	u64 second = segment->now_ns >> SAMPLE_SECOND_SHIFT;
	if (own->second != second) {
		own->second = second;
		own->samples = 0;
	}
	return ++own->samples > SAMPLES_PER_SECOND_MAX;
}

// Adds a sample of the request whose text was read last. Nobody is woken: lanes look by time.
SHARED void add_sample(const struct segment *segment, u64 generation, u64 note, u32 answer_bytes)
{
	u32 zero = 0;
	struct room *room = bpf_map_lookup_elem(&readings, &zero);
	u64 bytes = segment->text_bytes;
	FORGET(bytes);
	if (!room || bytes > TEXT_BYTES_MAX)
		return;
	if (is_over_limit(segment)) {
		count(COUNT_SAMPLE_LIMITED);
		return;
	}
	struct sample *sample = &room->sample;
	sample->note = note;
	sample->generation = generation;
	__builtin_memcpy(sample->source, segment->source, sizeof(sample->source));
	__builtin_memcpy(sample->destination, segment->destination, sizeof(sample->destination));
	sample->source_port = segment->source_port;
	sample->destination_port = segment->destination_port;
	sample->answer_bytes = answer_bytes;
	bool is_full = bpf_ringbuf_output(&samples, room, sizeof(*sample) + bytes,
					  BPF_RB_NO_WAKEUP);
	count(is_full ? COUNT_SAMPLE_LOST : COUNT_SAMPLED);
}
