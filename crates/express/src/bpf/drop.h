// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Clients whose segments are dropped for a while: what the lanes have refused too often.
#pragma once

#include "packet.h"

// Whether segments of this client are dropped now.
INLINE bool is_dropped(const struct settings *settings, const struct segment *segment)
{
	struct siphash hash;
	siphash_begin(&hash, &settings->digest_key);
	siphash_word(&hash, segment->source[0]);
	siphash_word(&hash, segment->source[1]);
	u32 number = siphash_end(&hash, 16) & (DROP_BUCKETS - 1);
	struct drop_bucket *bucket = bpf_map_lookup_elem(&drops, &number);
	if (!bucket)
		return false;
	for (u32 way = 0; way < WAYS; way++) {
		struct drop *drop = &bucket->ways[way];
		u64 expires_ns = FRESH(drop->expires_ns);
		if (expires_ns <= segment->now_ns || FRESH(drop->address[0]) != segment->source[0] ||
		    FRESH(drop->address[1]) != segment->source[1])
			continue;
		// Where it is just being written, the time is another one now.
		if (__sync_fetch_and_add(&drop->expires_ns, 0) != expires_ns)
			continue;
		drop->segments++;
		return true;
	}
	return false;
}
