// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What the program asks of the kernel, for the fuzz targets of user space: maps in plain memory, a
// frame with nothing readable around it, no sockets, and a clock that stands still.
#pragma once

#include <sanitizer/asan_interface.h>
#include <stdlib.h>

// Pointers do not fit into the kernel's own structures of contexts.
#define xdp_md kernel_xdp_md
#define __sk_buff kernel_sk_buff
#include <linux/bpf.h>
#undef xdp_md
#undef __sk_buff

struct xdp_md {
	u64 data;
	u64 data_end;
};

struct __sk_buff {
	u64 data;
	u64 data_end;
	u32 len;
};

#define SEC(name)
#define __ksym
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

#define bpf_htons __builtin_bswap16
#define bpf_ntohs __builtin_bswap16
#define bpf_htonl __builtin_bswap32
#define bpf_ntohl __builtin_bswap32

// Room around a frame, as drivers leave it, and the most bytes of one.
#define FUZZ_HEAD_ROOM 256
#define FUZZ_FRAME_BYTES_MAX 4096

struct frame_room {
	u8 bytes[FUZZ_HEAD_ROOM + FUZZ_FRAME_BYTES_MAX];
	u32 start;
	u32 end;
};

static struct frame_room frame_room;

// Only the frame itself can be read and written.
static inline void show_frame(struct xdp_md *context, u32 start, u32 end)
{
	ASAN_POISON_MEMORY_REGION(frame_room.bytes, sizeof(frame_room.bytes));
	ASAN_UNPOISON_MEMORY_REGION(frame_room.bytes + start, end - start);
	frame_room.start = start;
	frame_room.end = end;
	context->data = (u64)(frame_room.bytes + start);
	context->data_end = (u64)(frame_room.bytes + end);
}

// How the maps are found: the target has their memory.
static void *map_lookup(const void *map, u32 key) __attribute__((unused));

#define bpf_map_lookup_elem(map, key) map_lookup(map, *(key))

// The dearest calls, counted.
static u32 clock_reads, socket_lookups;

static inline u64 bpf_ktime_get_ns(void)
{
	clock_reads++;
	return 1ULL << 40;
}

static inline u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

static inline long bpf_xdp_load_bytes(struct xdp_md *context, u32 offset, void *to, u32 bytes)
{
	if (offset + bytes > context->data_end - context->data)
		return -1;
	memcpy(to, (u8 *)context->data + offset, bytes);
	return 0;
}

static inline long bpf_xdp_store_bytes(struct xdp_md *context, u32 offset, const void *from,
				       u32 bytes)
{
	if (offset + bytes > context->data_end - context->data)
		return -1;
	memcpy((u8 *)context->data + offset, from, bytes);
	return 0;
}

static inline long bpf_xdp_adjust_tail(struct xdp_md *context, int more)
{
	s64 end = (s64)frame_room.end + more;
	if (end < frame_room.start + 14 || end > (s64)sizeof(frame_room.bytes))
		return -1;
	show_frame(context, frame_room.start, end);
	return 0;
}

static inline long bpf_xdp_adjust_head(struct xdp_md *context, int more)
{
	s64 start = (s64)frame_room.start + more;
	if (start < 0 || start + 14 > frame_room.end)
		return -1;
	show_frame(context, start, frame_room.end);
	return 0;
}

static inline s64 bpf_csum_diff(void *from, u32 from_bytes, void *to, u32 to_bytes, u32 seed)
{
	u64 sum = seed;
	for (u32 at = 0; at + 4 <= to_bytes; at += 4) {
		u32 word;
		memcpy(&word, (u8 *)to + at, 4);
		sum += word;
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (sum & 0xffffffff) + (sum >> 32);
}

#define bpf_loop(count, step, context, flags)                                                  \
	do {                                                                                   \
		for (u32 number = 0; number < (count) && !step(number, context); number++) {   \
		}                                                                              \
	} while (0)

// The sample that was added last, and how many were added.
#define FUZZ_SAMPLE_BYTES_MAX 4096
static u8 sample_room[FUZZ_SAMPLE_BYTES_MAX];
static u64 sample_bytes;
static u32 sample_count;

static inline long bpf_ringbuf_output(void *ring, const void *from, u64 bytes, u64 flags)
{
	if (bytes > sizeof(sample_room))
		return -1;
	memcpy(sample_room, from, bytes);
	sample_bytes = bytes;
	sample_count++;
	return 0;
}

// There are no sockets.
static inline struct bpf_sock *bpf_skc_lookup_tcp(void *context, struct bpf_sock_tuple *tuple,
						  u32 bytes, u64 netns, u64 flags)
{
	socket_lookups++;
	return 0;
}

static inline long bpf_sk_release(struct bpf_sock *socket)
{
	return 0;
}

static inline struct tcp_sock *bpf_skc_to_tcp_sock(struct bpf_sock *socket)
{
	return 0;
}
