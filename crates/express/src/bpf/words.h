// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Eight bytes at a time: tests on all bytes of a 64-bit word, without a branch for each. The lowest
// byte of a word is the first one in memory (little-endian machines only, as the loader checks).
#pragma once

#include "types.h"

#define EACH(byte) (0x0101010101010101ULL * (byte))
#define HIGH_BITS EACH(0x80)

// The high bit of each byte that is at least `least`, where no byte of `word` is above 0x7f.
INLINE u64 at_least(u64 word, u8 least)
{
	return ((word | HIGH_BITS) - EACH(least)) & HIGH_BITS;
}

// The high bit of each byte from `first` to `last`, where no byte of `word` is above 0x7f.
INLINE u64 between(u64 word, u8 first, u8 last)
{
	return at_least(word, first) & ~at_least(word, last + 1);
}

// The number of bytes below the lowest high bit that is set; 8 where none is.
INLINE u32 bytes_before(u64 high_bits)
{
	if (!high_bits)
		return 8;
	// The product puts the number of whole bytes below the lowest bit into the top byte.
	return (((((high_bits & -high_bits) >> 7) - 1) & EACH(1)) * EACH(1)) >> 56;
}

// The first `count` bytes of a word (0 to 8), with zeros behind them.
INLINE u64 first_bytes(u64 word, u32 count)
{
	if (count >= 8)
		return word;
	return word & ((1ULL << (count * 8)) - 1);
}
