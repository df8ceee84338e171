// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Turns a segment round: the frame that came becomes the one that answers it.
#pragma once

#include "checksum.h"
#include "options.h"

// The usual number of hops (RFC 1700).
#define HOPS_MAX 64
// The window of segments that are sent here: nothing but a request is wanted.
#define OUR_WINDOW 0xffff

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_PUSH 0x08
#define TCP_ACK 0x10

// Offset of the flags in a TCP header.
#define TCP_FLAGS_AT 13

struct reply {
	u32 sequence;
	u32 acknowledgement;
	u32 flags;
	// Header, options and text.
	u32 tcp_bytes;
	// The sum of options and text.
	u64 sum;
};

INLINE void swap_stations(struct ethhdr *ethernet)
{
	u8 station[ETH_ALEN];
	__builtin_memcpy(station, ethernet->h_dest, ETH_ALEN);
	__builtin_memcpy(ethernet->h_dest, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, station, ETH_ALEN);
}

// The answer may be fragmented on its way: nobody here would hear that it was too long.
INLINE void turn_ipv4(struct iphdr *ip, const struct reply *reply)
{
	u32 source = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = source;
	ip->tos = 0;
	ip->tot_len = bpf_htons(sizeof(*ip) + reply->tcp_bytes);
	// Random enough (RFC 6864 section 4.3): our first number is a hash.
	ip->id = reply->sequence ^ reply->acknowledgement;
	ip->frag_off = 0;
	ip->ttl = HOPS_MAX;
	ip->check = 0;
	u64 sum = 0;
	u32 *words = (void *)ip;
#pragma unroll
	for (u32 word = 0; word < sizeof(*ip) / 4; word++)
		sum += words[word];
	ip->check = ~fold(sum);
}

INLINE void turn_ipv6(struct ipv6hdr *ip, const struct reply *reply)
{
	struct in6_addr source = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = source;
	*(u32 *)ip = bpf_htonl(6U << 28);
	ip->payload_len = bpf_htons(reply->tcp_bytes);
	ip->hop_limit = HOPS_MAX;
}

INLINE void turn_tcp(struct tcphdr *tcp, const struct segment *segment, const struct reply *reply)
{
	u16 source = tcp->source;
	tcp->source = tcp->dest;
	tcp->dest = source;
	tcp->seq = bpf_htonl(reply->sequence);
	tcp->ack_seq = bpf_htonl(reply->acknowledgement);
	u8 *bytes = (void *)tcp;
	// The reserved bits are for nonces of long ago.
	bytes[TCP_FLAGS_AT - 1] &= 0xf0;
	bytes[TCP_FLAGS_AT] = reply->flags;
	tcp->window = bpf_htons(OUR_WINDOW);
	tcp->urg_ptr = 0;
	tcp->check = 0;
	u64 sum = pseudo_header_sum(segment, reply->tcp_bytes) + reply->sum;
	u32 *words = (void *)tcp;
#pragma unroll
	for (u32 word = 0; word < TCP_HEADER_BYTES / 4; word++)
		sum += words[word];
	tcp->check = ~fold(sum);
}

// Writes the headers of the answer over those of the segment.
INLINE bool turn_round(void *data, void *end, const struct segment *segment,
		       const struct reply *reply)
{
	struct ethhdr *ethernet = data;
	u64 ip_at = segment->ip_at;
	u64 tcp_at = segment->tcp_at;
	if ((void *)(ethernet + 1) > end || !is_bounded(&ip_at) || !is_bounded(&tcp_at))
		return false;
	struct tcphdr *tcp = data + tcp_at;
	if ((void *)(tcp + 1) > end)
		return false;
	if (segment->is_ipv6) {
		struct ipv6hdr *ip = data + ip_at;
		if ((void *)(ip + 1) > end)
			return false;
		turn_ipv6(ip, reply);
	} else {
		struct iphdr *ip = data + ip_at;
		if ((void *)(ip + 1) > end)
			return false;
		turn_ipv4(ip, reply);
	}
	swap_stations(ethernet);
	turn_tcp(tcp, segment, reply);
	return true;
}

// Writes timestamps of ours into a segment that has room for them; returns their sum.
INLINE u64 answer_timestamps(void *data, void *end, const struct segment *segment,
			     const struct timestamps *timestamps)
{
	u64 tcp_at = segment->tcp_at;
	if (!timestamps->present || !is_bounded(&tcp_at))
		return 0;
	u32 *words = data + tcp_at + TCP_HEADER_BYTES;
	if ((void *)(words + TIMESTAMP_BYTES / 4) > end)
		return 0;
	words[0] = bpf_htonl(TIMESTAMP_HEAD);
	words[1] = bpf_htonl(timestamp_at(segment->now_ns));
	words[2] = bpf_htonl(timestamps->value);
	return (u64)words[0] + words[1] + words[2];
}
