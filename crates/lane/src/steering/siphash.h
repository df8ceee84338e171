// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// SipHash-2-4 of whole words (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): a
// keyed hash whose values cannot be foretold without the key.
//
// Who includes this has defined u32, u64 and INLINE.
#pragma once

struct siphash_key {
	u64 first;
	u64 second;
};

struct siphash {
	u64 v0, v1, v2, v3;
};

INLINE u64 rotate_left(u64 value, u32 bits)
{
	return value << bits | value >> (64 - bits);
}

INLINE void siphash_round(struct siphash *state)
{
	state->v0 += state->v1;
	state->v1 = rotate_left(state->v1, 13) ^ state->v0;
	state->v0 = rotate_left(state->v0, 32);
	state->v2 += state->v3;
	state->v3 = rotate_left(state->v3, 16) ^ state->v2;
	state->v0 += state->v3;
	state->v3 = rotate_left(state->v3, 21) ^ state->v0;
	state->v2 += state->v1;
	state->v1 = rotate_left(state->v1, 17) ^ state->v2;
	state->v2 = rotate_left(state->v2, 32);
}

INLINE void siphash_begin(struct siphash *state, const struct siphash_key *key)
{
	state->v0 = key->first ^ 0x736f6d6570736575ULL;
	state->v1 = key->second ^ 0x646f72616e646f6dULL;
	state->v2 = key->first ^ 0x6c7967656e657261ULL;
	state->v3 = key->second ^ 0x7465646279746573ULL;
}

INLINE void siphash_word(struct siphash *state, u64 word)
{
	state->v3 ^= word;
	siphash_round(state);
	siphash_round(state);
	state->v0 ^= word;
}

// `bytes`: the length of all words together.
INLINE u64 siphash_end(struct siphash *state, u64 bytes)
{
	siphash_word(state, bytes << 56);
	state->v2 ^= 0xff;
	for (u32 round = 0; round < 4; round++)
		siphash_round(state);
	return state->v0 ^ state->v1 ^ state->v2 ^ state->v3;
}
