// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Short names for the kernel's fixed-width types, and the same code for two places: the kernel
// (BPF), and a user-space fuzz target of the parser.
#pragma once

#ifdef __bpf__
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
#define INLINE static __always_inline
// For what is long or called from many places: the verifier judges it as part of each caller.
#define SHARED static __attribute__((noinline))
#else
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#define INLINE static inline
#define SHARED static inline
#include "kernel_fuzz.h"
#endif

#ifndef __cplusplus
#ifndef bool
#define bool _Bool
#define true 1
#define false 0
#endif
#endif

// Has the compiler forget what it knows of a value: a check of its bounds stays then, and stays
// where the verifier sees it.
#define FORGET(value) asm volatile("" : "+r"(value))

// Reads a field of shared memory anew. The verifier then knows nothing of the value: what it knew
// from the rounds of a loop would make each way out of it a path of its own.
#define FRESH(field) (*(volatile typeof(field) *)&(field))
