// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The internet checksum (RFC 1071) in IPv4 and TCP.
#pragma once

#include "packet.h"

// Sums are over words in network order, so that no byte is swapped (RFC 1071 section 2).
INLINE u16 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum + (sum >> 16);
}

// The header that TCP's checksum covers besides the segment (RFC 9293 section 3.1, RFC 8200
// section 8.1); the sum is the same in both directions.
INLINE u64 pseudo_header_sum(const struct segment *segment, u32 tcp_bytes)
{
	u64 sum = bpf_htons(IPPROTO_TCP) + (u64)bpf_htons(tcp_bytes);
	if (segment->is_ipv6) {
		sum += (u32)segment->source[0] + (segment->source[0] >> 32);
		sum += (u32)segment->destination[0] + (segment->destination[0] >> 32);
		sum += (u32)segment->source[1] + (u64)(u32)segment->destination[1];
	}
	return sum + (segment->source[1] >> 32) + (segment->destination[1] >> 32);
}

// A block that bpf_csum_diff takes on every kernel.
#define SUM_BLOCK_BYTES 512
#define SUM_BLOCKS ((TEXT_BYTES_MAX + SUM_BLOCK_BYTES - 1) / SUM_BLOCK_BYTES)

// The sum of `bytes` bytes of a text, which has zeros up to a multiple of 4.
INLINE u64 text_sum(struct reading *reading, u32 bytes)
{
	u64 sum = 0;
	for (u32 block = 0; block < SUM_BLOCKS; block++) {
		u32 start = block * SUM_BLOCK_BYTES;
		if (start >= bytes)
			break;
		u32 left = (bytes - start + 3) & ~3U;
		if (left > SUM_BLOCK_BYTES)
			left = SUM_BLOCK_BYTES;
		s64 part = bpf_csum_diff(0, 0, (void *)(reading->text + start), left, 0);
		sum += (u32)part;
	}
	return sum;
}
