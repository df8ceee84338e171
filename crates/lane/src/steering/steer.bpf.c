// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Chooses the gate of a new connection, or of a datagram of QUIC, among the lanes of one address
// (sk_reuseport).
//
// The lane on the packet's CPU is preferred while it is alive and about as free as the freest one;
// otherwise two living lanes are picked at random and the freer one gets the connection. A lane
// that has stopped coming round gets nothing while another one lives. When nobody does, as on a
// machine so busy that no lane had a CPU for a while, the one that was seen last gets it: a lane
// that hangs has been silent for longer than one that merely waits for a CPU. When no lane is there
// at all, nothing is selected, and the kernel's own hash decides.
//
// A datagram of QUIC goes to the lane that its connection ID names. One that names none, since the
// client has chosen it, or since another process gave it, goes by a hash of it, so that all of its
// connection come to one lane.
//
// The object beside this file is committed, so that building the server needs no clang;
// `cargo xtask bpf` makes it anew.
//
// Lanes tell their state by writing to the mapped array `lanes`; they make no system call for it.
// The layout of the structures below is repeated in board.rs.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
#define INLINE static __always_inline

#include "siphash.h"

// Most lanes looked at: bounds the loops for the verifier, and the work for each connection.
#define LANES_MAX 256
// Most lanes of one CPU; a power of two, since the verifier wants the index masked.
#define HOME_LANES_MAX 4
// Heartbeats are CLOCK_MONOTONIC plus this, so that memory nobody has written says "not there".
#define EPOCH (1ULL << 62)
// More than any lane can work on.
#define NOBODY (~0ULL)

struct lane {
	// Written by the lane: EPOCH plus the time when its round began. 0 when it is not there;
	// 2 * EPOCH, far in the future, when it waits for events and will come as soon as woken.
	u64 heartbeat;
	// Written by the lane: the connections it works on.
	u64 load;
	// Written by the lane: `steered` as it was when its round began.
	u64 seen;
	// When its last round began, for the watchdog.
	u64 round;
	u64 unused[4];
	// Written here, and on another cache line: connections given to the lane since the start.
	u64 steered;
	u64 more_unused[7];
};

struct rules {
	u64 stale_ns;
	u64 slack;
	u64 lanes;
};

struct home {
	u32 count;
	u32 lanes[HOME_LANES_MAX];
};

// How connection IDs are read; connection_id.rs writes them.
struct quic {
	struct siphash_key key;
	// The key of IDs that were given before the key was changed; the same where it was not.
	struct siphash_key old_key;
	// The number of the process that reads the gates.
	u64 process;
};

// One value for all lanes, so that a loop over them needs no look-up for each.
struct board {
	struct lane lanes[LANES_MAX];
	// Written by the serving process that reads the gates.
	struct quic quic;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct board);
} lanes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rules);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct home);
} homes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY);
	__uint(max_entries, LANES_MAX);
	__type(key, u32);
	__type(value, u64);
} gates SEC(".maps");

static const u32 ZERO = 0;

// Hides from the compiler what is known of a value. It would make branches of the arithmetic below,
// and the verifier would follow every combination of them over all lanes.
#define HIDE(value) asm volatile("" : "+r"(value))

// All ones when `one` is smaller, else 0. Their distance must be below half the range.
static __always_inline u64 if_smaller(u64 one, u64 other)
{
	u64 sign = (one - other) >> 63;

	HIDE(sign);
	return -sign;
}

// All ones when the lane is there and not stuck, else 0.
static __always_inline u64 if_alive(const struct lane *lane, u64 now, u64 stale_ns)
{
	u64 beat = *(volatile const u64 *)&lane->heartbeat;

	return if_smaller(now + EPOCH - beat, stale_ns);
}

// What the lane works on, and what it was given since it last looked.
static __always_inline u64 load_of(const struct lane *lane)
{
	u64 given = *(volatile const u64 *)&lane->steered;
	u64 seen = *(volatile const u64 *)&lane->seen;

	return *(volatile const u64 *)&lane->load + (given - seen);
}

static __always_inline u64 smaller(u64 one, u64 other)
{
	u64 mask = if_smaller(one, other);

	return (one & mask) | (other & ~mask);
}

// The functions that are not inlined are checked once each by the verifier (Linux 5.6).

// The load of the freest living lane; NOBODY when none lives.
__noinline u64 least_load(u64 now)
{
	struct board *board = bpf_map_lookup_elem(&lanes, &ZERO);
	struct rules *rule = bpf_map_lookup_elem(&rules, &ZERO);
	u64 least = NOBODY >> 1, anybody = 0;
	u32 number;

	if (!board || !rule)
		return NOBODY;
	for (number = 0; number < LANES_MAX && number < rule->lanes; number++) {
		struct lane *lane = &board->lanes[number];
		u64 alive = if_alive(lane, now, rule->stale_ns);

		anybody |= alive;
		least = smaller((load_of(lane) & alive) | (NOBODY >> 1 & ~alive), least);
	}
	return anybody ? least : NOBODY;
}

// The load of one lane; NOBODY when it does not live.
__noinline u64 load_if_alive(u32 number, u64 now)
{
	struct board *board = bpf_map_lookup_elem(&lanes, &ZERO);
	struct rules *rule = bpf_map_lookup_elem(&rules, &ZERO);

	if (!board || !rule || number >= LANES_MAX)
		return NOBODY;
	if (!if_alive(&board->lanes[number], now, rule->stale_ns))
		return NOBODY;
	return load_of(&board->lanes[number]);
}

// The first living lane from `start` on, round the end; LANES_MAX when none lives.
__noinline u32 living_from(u32 start, u64 now)
{
	struct board *board = bpf_map_lookup_elem(&lanes, &ZERO);
	struct rules *rule = bpf_map_lookup_elem(&rules, &ZERO);
	u64 nearest = NOBODY >> 1, count;
	u32 number;

	if (!board || !rule || start >= LANES_MAX)
		return LANES_MAX;
	if (if_alive(&board->lanes[start], now, rule->stale_ns))
		return start;
	count = rule->lanes;
	for (number = 0; number < LANES_MAX && number < count; number++) {
		u64 alive = if_alive(&board->lanes[number], now, rule->stale_ns);
		u64 distance = number - (u64)start + (count & if_smaller(number, start));

		nearest = smaller((distance & alive) | (NOBODY >> 1 & ~alive), nearest);
	}
	if (count == 0 || nearest >= count)
		return LANES_MAX;
	return (start + nearest) % count;
}

// The lane with the latest heartbeat, however old; LANES_MAX when none is there.
__noinline u32 seen_last(u64 now)
{
	struct board *board = bpf_map_lookup_elem(&lanes, &ZERO);
	struct rules *rule = bpf_map_lookup_elem(&rules, &ZERO);
	// A lane that is not there has no heartbeat, which makes it older than this.
	u64 youngest = EPOCH, found = LANES_MAX;
	u32 number;

	if (!board || !rule)
		return LANES_MAX;
	for (number = 0; number < LANES_MAX && number < rule->lanes; number++) {
		u64 beat = *(volatile const u64 *)&board->lanes[number].heartbeat;
		u64 age = now + EPOCH - beat;
		u64 younger = if_smaller(age, youngest);

		youngest = (age & younger) | (youngest & ~younger);
		found = (number & younger) | (found & ~younger);
	}
	return found;
}

// Whether the lane has a gate of this address, which then gets the connection.
__noinline int give_to(struct sk_reuseport_md *packet, u32 number)
{
	struct board *board = bpf_map_lookup_elem(&lanes, &ZERO);
	u32 key = number;

	if (!board || number >= LANES_MAX)
		return 0;
	if (bpf_sk_select_reuseport(packet, &gates, &key, 0))
		return 0;
	__sync_fetch_and_add(&board->lanes[number].steered, 1);
	return 1;
}

// A lane of the packet's CPU; LANES_MAX when it has none.
static __always_inline u32 home_lane(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct home *home = bpf_map_lookup_elem(&homes, &cpu);

	if (!home || home->count == 0)
		return LANES_MAX;
	return home->lanes[bpf_get_prandom_u32() % home->count & (HOME_LANES_MAX - 1)];
}

static __always_inline u32 better_of_two(u32 count, u64 now)
{
	u32 first = living_from(bpf_get_prandom_u32() % count, now);
	u32 others = count > 1 ? count - 1 : 1;
	u32 second = living_from((first + 1 + bpf_get_prandom_u32() % others) % count, now);

	return load_if_alive(second, now) < load_if_alive(first, now) ? second : first;
}

SEC("sk_reuseport/migrate")
int steer(struct sk_reuseport_md *packet)
{
	struct rules *rule = bpf_map_lookup_elem(&rules, &ZERO);
	u64 now = bpf_ktime_get_ns(), least;
	u32 count, number, step;

	if (!rule)
		return SK_PASS;
	count = rule->lanes;
	least = least_load(now);
	if (count == 0)
		return SK_PASS;
	if (least == NOBODY) {
		give_to(packet, seen_last(now));
		return SK_PASS;
	}

	number = home_lane();
	if (load_if_alive(number, now) <= least + least / 8 + rule->slack && give_to(packet, number))
		return SK_PASS;
	number = better_of_two(count, now);
	if (give_to(packet, number))
		return SK_PASS;

	// The chosen lane has no gate here (any more): whoever lives and has one.
	for (step = 0; step < LANES_MAX && step < count; step++) {
		number = living_from((number + 1) % count, now);
		if (give_to(packet, number))
			return SK_PASS;
	}
	return SK_PASS;
}

// The ID of an own connection, and the longest one, in bytes.
#define ID_BYTES 12
#define ID_BYTES_MAX 20
#define UDP_HEADER_BYTES 8
// In a long header: the version stands in front of the ID's length (RFC 8999).
#define LONG_HEADER 0x80
#define LENGTH_OFFSET (UDP_HEADER_BYTES + 5)

#define WORDS_MAX 3

// Zero behind the ID.
union connection_id {
	u8 bytes[WORDS_MAX * sizeof(u64)];
	u64 words[WORDS_MAX];
	struct {
		u64 hidden;
		u32 masked;
	};
};

// A function of its own, since its code is long.
static __noinline u64 hash_of(const struct siphash_key *key, const u64 *words, u32 count, u64 bytes)
{
	struct siphash hash;
	u32 number;

	siphash_begin(&hash, key);
#pragma clang loop unroll(disable)
	for (number = 0; number < WORDS_MAX && number < count; number++)
		siphash_word(&hash, words[number]);
	return siphash_end(&hash, bytes);
}

// The gate of the lane that an ID of this process names; LANES_MAX when it names none.
INLINE u32 lane_named(const union connection_id *id, const struct siphash_key *key, u64 process)
{
	u64 masked = id->masked;
	u64 random = id->hidden ^ hash_of(key, &masked, 1, sizeof(id->masked));
	u32 place = masked ^ (u32)hash_of(key, &random, 1, sizeof(random));

	return place >> 16 == process ? place & 0xff : LANES_MAX;
}

// Reads the ID that a datagram is sent to; returns its length, or more than any has.
static __always_inline u32 read_id(struct sk_reuseport_md *packet, union connection_id *id)
{
	u32 offset = UDP_HEADER_BYTES + 1, length = ID_BYTES;
	u8 byte;

	if (bpf_skb_load_bytes(packet, UDP_HEADER_BYTES, &byte, 1))
		return ID_BYTES_MAX + 1;
	if (byte & LONG_HEADER) {
		if (bpf_skb_load_bytes(packet, LENGTH_OFFSET, &byte, 1))
			return ID_BYTES_MAX + 1;
		length = byte;
		offset = LENGTH_OFFSET + 1;
		if (length == 0)
			return 0;
	}
	HIDE(length);
	if (length == 0 || length > ID_BYTES_MAX)
		return ID_BYTES_MAX + 1;
	if (bpf_skb_load_bytes(packet, offset, id->bytes, length))
		return ID_BYTES_MAX + 1;
	return length;
}

SEC("sk_reuseport")
int steer_quic(struct sk_reuseport_md *packet)
{
	struct rules *rule = bpf_map_lookup_elem(&rules, &ZERO);
	struct board *board = bpf_map_lookup_elem(&lanes, &ZERO);
	union connection_id id = {};
	struct quic *own;
	u32 length, number, count;

	if (!rule || !board || rule->lanes == 0)
		return SK_PASS;
	own = &board->quic;
	count = rule->lanes;
	length = read_id(packet, &id);
	if (length > ID_BYTES_MAX)
		return SK_PASS;
	if (length == ID_BYTES) {
		number = lane_named(&id, &own->key, own->process);
		if (number >= count)
			number = lane_named(&id, &own->old_key, own->process);
		if (number < count && !bpf_sk_select_reuseport(packet, &gates, &number, 0))
			return SK_PASS;
	}
	number = hash_of(&own->key, id.words, WORDS_MAX, length) % count;
	length = living_from(number, bpf_ktime_get_ns());
	if (length < LANES_MAX)
		number = length;
	bpf_sk_select_reuseport(packet, &gates, &number, 0);
	return SK_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
