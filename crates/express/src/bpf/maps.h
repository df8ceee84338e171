// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What the program and the server share: arrays that the serving process has mapped, so that it
// changes them without a system call. layout.rs repeats every offset and size.
#pragma once

#include "request.h"
#include "../../../lane/src/steering/siphash.h"

// The most bytes of an answer, head and body: what a segment on an Ethernet of 1500 bytes holds.
#define ANSWER_BYTES_MAX 1460

// An answer, whole. `version` is odd while the serving process writes; a reader takes what it
// copied only if the version is even and the same before and after.
struct answer {
	u64 version;
	// Hash of the key: 0 where the slot is empty.
	u64 digest;
	// CLOCK_MONOTONIC from which on it is too old. The serving process puts it off every second;
	// if it hangs, its answers end.
	u64 expires_ns;
	// The configuration that it was made under.
	u64 generation;
	u16 host_bytes;
	u16 target_bytes;
	u16 answer_bytes;
	// The gate: the port and the address that the client connected to (IPv4 as
	// ::ffff:a.b.c.d).
	u16 port;
	// Ones' complement sum of the answer (RFC 1071), not folded below 32 bits.
	u32 sum;
	// ANSWER_*, and the chance of a sample.
	u32 flags;
	u64 address[2];
	// The serving process's own word of the answer, which samples bring back.
	u64 note;
	// Padded with zeros to whole words.
	u8 host[HOST_BYTES_MAX];
	u8 target[TARGET_BYTES_MAX];
	u8 bytes[ANSWER_BYTES_MAX + 4];
};

// For HEAD, else for GET.
#define ANSWER_TO_HEAD 1
// For clients that keep the connection too: the answer closes it.
#define ANSWER_CLOSES 2
// Only where the client accepts no coding.
#define ANSWER_UNCODED 4
// Above them: the chance that a request is sampled, less 1 of 2^24; 0 is none.
#define ANSWER_CHANCE_SHIFT 8

// 2048 bytes: so many answers fit into a page without a rest.
struct slot {
	struct answer answer;
	// Written here: how often it was sent. Several CPUs may lose a count.
	u64 hits;
};

// The slots that a key can be in, side by side.
#define WAYS 4
// The most ports of gates.
#define PORTS_MAX 16
// Beside a port: nothing is answered there, but clients are dropped.
#define GATE_SILENT 0x10000

struct settings {
	// Answers of other configurations are not sent.
	u64 generation;
	// Whether SYN segments are answered; connections that have begun go on in any case.
	u64 answers_syn;
	// Whether requests are answered.
	u64 answers_requests;
	// The number of slots minus 1: a power of two minus 1.
	u64 slot_mask;
	struct siphash_key cookie_key;
	struct siphash_key digest_key;
	u64 port_count;
	// Gates: ports in host order, and GATE_*.
	u32 ports[PORTS_MAX];
	// Their addresses: 0 stands for any.
	u64 addresses[PORTS_MAX][2];
	// Whether there are clients whose segments are dropped.
	u64 drops;
};

// A client whose segments are dropped. Its writer sets `expires_ns` to a time long ago before it
// changes the address.
struct drop {
	u64 expires_ns;
	// Written here: how many were dropped. Several CPUs may lose a count.
	u64 segments;
	u64 address[2];
};

// A client can stand in any of so many places.
struct drop_bucket {
	struct drop ways[WAYS];
};

// A power of two; room for 16,384 clients in 512 KiB.
#define DROP_BUCKETS 4096

#define COUNTERS_MAX 64
#define CPUS_MAX 256

// Each CPU's counters; only that CPU writes them.
struct counters {
	u64 values[COUNTERS_MAX];
};

enum counter {
	// Requests that were answered here.
	COUNT_HITS,
	COUNT_HIT_BYTES,
	// SYN segments that were answered.
	COUNT_SYN_ANSWERED,
	// Acknowledgements that need no answer.
	COUNT_ACKNOWLEDGED,
	// FIN segments that were answered.
	COUNT_FIN_ANSWERED,
	// Requests left to the lanes, by reason.
	COUNT_MISS_KEY,
	COUNT_MISS_EXPIRED,
	COUNT_MISS_CHANGING,
	COUNT_MISS_KEPT_ALIVE,
	COUNT_MISS_CODING,
	COUNT_MISS_WINDOW,
	COUNT_MISS_SEGMENT,
	COUNT_MISS_ROOM,
	COUNT_MISS_CHECKSUM,
	// Requests on connections of the kernel.
	COUNT_MISS_SOCKET,
	// What the parser refuses; the rest of this block is in the order of `enum refusal`.
	COUNT_REFUSED,
	COUNT_REFUSED_LAST = COUNT_REFUSED + REFUSAL_HOST,
	// SYN segments left to the kernel: odd ones, and those while SYNs are not answered.
	COUNT_SYN_PASSED,
	// Connections whose first segment was handed to a listener.
	COUNT_HANDED_OVER,
	COUNT_HANDOVER_FAILED,
	// Segments dropped since their answer was changed while it was copied; the client repeats.
	COUNT_DROPPED_CHANGING,
	// Segments of clients that are kept out.
	COUNT_DROPPED_CLIENT,
	// Samples that were added, those over the limit, and those without room in the ring.
	COUNT_SAMPLED,
	COUNT_SAMPLE_LIMITED,
	COUNT_SAMPLE_LOST,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WAYS);
	__type(key, u32);
	__type(value, struct slot);
} answers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DROP_BUCKETS);
	__type(key, u32);
	__type(value, struct drop_bucket);
} drops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CPUS_MAX);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

// What stands in front of the text in a sample; samples.rs has the same by words.
struct sample {
	// Of the answer, and the configuration under which it was sent.
	u64 note;
	u64 generation;
	// The client and the gate, as in `struct segment`.
	u64 source[2];
	u64 destination[2];
	u16 source_port;
	u16 destination_port;
	u32 answer_bytes;
};

// Where a segment is read: too much for the stack. The text stands behind the room for a sample, so
// that both are added to the ring at once.
struct room {
	struct sample sample;
	struct reading reading;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct room);
} readings SEC(".maps");

// How many samples a CPU has drawn in the present second.
struct sampling {
	u64 second;
	u64 samples;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sampling);
} sampling SEC(".maps");

// Room for some hundred samples, as lanes read them every second: a power of two, of whole pages.
#define SAMPLE_RING_BYTES (256 * 1024)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SAMPLE_RING_BYTES);
} samples SEC(".maps");

// Marks of the connections whose first segment was just passed on. Frames are taken in by the batch:
// the next segments of such a connection may come by before the kernel has made a socket for it.
#define PASSED_SHIFT 10
#define PASSED_MAX (1 << PASSED_SHIFT)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PASSED_MAX);
	__type(key, u32);
	__type(value, u64);
} passed SEC(".maps");

INLINE void count_many(u32 counter, u64 many)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct counters *own = bpf_map_lookup_elem(&counters, &cpu);
	if (own && counter < COUNTERS_MAX)
		own->values[counter] += many;
}

INLINE void count(u32 counter)
{
	count_many(counter, 1);
}

INLINE struct settings *settings_in_force(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&settings, &zero);
}

INLINE struct reading *reading_room(void)
{
	u32 zero = 0;
	struct room *room = bpf_map_lookup_elem(&readings, &zero);
	return room ? &room->reading : 0;
}
