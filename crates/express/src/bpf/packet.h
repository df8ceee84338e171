// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Finds the headers of a TCP segment: Ethernet with up to two VLAN tags (IEEE 802.1Q, 802.1ad),
// IPv4 without options (RFC 791) or IPv6 without extension headers (RFC 8200), TCP (RFC 9293).
// Everything else is the kernel's, fragments too.
#pragma once

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

#include "maps.h"

#define VLAN_TAGS_MAX 2
#define VLAN_TAG_BYTES 4
#define TCP_HEADER_BYTES 20
#define TCP_OPTIONS_BYTES_MAX 40

// The more-fragments bit and the fragment's offset (RFC 791 section 3.1).
#define IPV4_FRAGMENT 0x3fff

// A segment. Offsets are from the start of the frame; numbers are in host order.
struct segment {
	u32 ip_at;
	u32 tcp_at;
	u32 text_at;
	u32 text_bytes;
	u32 frame_bytes;
	// When it came, by CLOCK_MONOTONIC: the clock is read once.
	u64 now_ns;
	bool is_ipv6;
	// Addresses in network order, IPv4 as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2).
	u64 source[2];
	u64 destination[2];
	u16 source_port;
	u16 destination_port;
	u32 sequence;
	u32 acknowledgement;
	u16 window;
	bool syn, ack, fin, rst, urg;
};

struct vlan_tag {
	u16 control;
	u16 ether_type;
};

INLINE bool is_vlan(u16 ether_type)
{
	return ether_type == bpf_htons(ETH_P_8021Q) || ether_type == bpf_htons(ETH_P_8021AD);
}

// The high half of an IPv4 address as IPv6: 0, 0xffff, address.
INLINE u64 mapped_ipv4(u32 address)
{
	return (u64)address << 32 | bpf_htonl(0xffffULL);
}

INLINE bool find_ipv4(void *data, void *end, struct segment *segment)
{
	struct iphdr *ip = data + segment->ip_at;
	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_TCP || ip->frag_off & bpf_htons(IPV4_FRAGMENT))
		return false;
	segment->tcp_at = segment->ip_at + sizeof(*ip);
	segment->frame_bytes = segment->ip_at + bpf_ntohs(ip->tot_len);
	segment->source[1] = mapped_ipv4(ip->saddr);
	segment->destination[1] = mapped_ipv4(ip->daddr);
	return true;
}

INLINE bool find_ipv6(void *data, void *end, struct segment *segment)
{
	struct ipv6hdr *ip = data + segment->ip_at;
	if ((void *)(ip + 1) > end || ip->version != 6 || ip->nexthdr != IPPROTO_TCP)
		return false;
	segment->is_ipv6 = true;
	segment->tcp_at = segment->ip_at + sizeof(*ip);
	segment->frame_bytes = segment->tcp_at + bpf_ntohs(ip->payload_len);
	__builtin_memcpy(segment->source, &ip->saddr, sizeof(segment->source));
	__builtin_memcpy(segment->destination, &ip->daddr, sizeof(segment->destination));
	return true;
}

INLINE bool find_ip(void *data, void *end, struct segment *segment)
{
	struct ethhdr *ethernet = data;
	if ((void *)(ethernet + 1) > end)
		return false;
	u16 ether_type = ethernet->h_proto;
	segment->ip_at = sizeof(*ethernet);
#pragma unroll
	for (u32 tags = 0; tags < VLAN_TAGS_MAX; tags++) {
		if (!is_vlan(ether_type))
			break;
		struct vlan_tag *tag = data + segment->ip_at;
		if ((void *)(tag + 1) > end)
			return false;
		ether_type = tag->ether_type;
		segment->ip_at += VLAN_TAG_BYTES;
	}
	if (ether_type == bpf_htons(ETH_P_IP))
		return find_ipv4(data, end, segment);
	if (ether_type == bpf_htons(ETH_P_IPV6))
		return find_ipv6(data, end, segment);
	return false;
}

// Finds a TCP segment in a frame of so many bytes; `false`: it is something else, or odd.
INLINE bool find_segment(void *data, void *end, u64 frame_bytes, struct segment *segment)
{
	if (!find_ip(data, end, segment))
		return false;
	struct tcphdr *tcp = data + segment->tcp_at;
	if ((void *)(tcp + 1) > end || tcp->doff < 5)
		return false;
	segment->text_at = segment->tcp_at + tcp->doff * 4;
	if (segment->frame_bytes < segment->text_at ||
	    segment->frame_bytes > frame_bytes)
		return false;
	segment->text_bytes = segment->frame_bytes - segment->text_at;
	segment->source_port = bpf_ntohs(tcp->source);
	segment->destination_port = bpf_ntohs(tcp->dest);
	segment->sequence = bpf_ntohl(tcp->seq);
	segment->acknowledgement = bpf_ntohl(tcp->ack_seq);
	segment->window = bpf_ntohs(tcp->window);
	segment->syn = tcp->syn;
	segment->ack = tcp->ack;
	segment->fin = tcp->fin;
	segment->rst = tcp->rst;
	segment->urg = tcp->urg;
	return true;
}

// Where TCP stands at most: behind two VLAN tags and IPv6.
#define TCP_AT_MAX (ETH_HLEN + VLAN_TAGS_MAX * VLAN_TAG_BYTES + sizeof(struct ipv6hdr))

// An offset that was found before. The verifier forgets its bounds wherever the segment is passed
// to a function that is not inlined, so that they are checked again.
INLINE bool is_bounded(u64 *offset)
{
	FORGET(*offset);
	return *offset <= TCP_AT_MAX;
}

// What the gate is for that listens at the segment's destination.
enum gate {
	GATE_NONE,
	GATE_ANSWERS,
	GATE_DROPS,
};

INLINE enum gate gate_of(const struct settings *settings, const struct segment *segment)
{
	for (u32 gate = 0; gate < PORTS_MAX; gate++) {
		if (gate >= settings->port_count)
			return GATE_NONE;
		const u64 *address = settings->addresses[gate];
		u32 port = settings->ports[gate];
		if ((port & ~GATE_SILENT) != segment->destination_port)
			continue;
		bool any = !(address[0] | address[1]);
		if (any || (address[0] == segment->destination[0] &&
			    address[1] == segment->destination[1]))
			return port & GATE_SILENT ? GATE_DROPS : GATE_ANSWERS;
	}
	return GATE_NONE;
}
