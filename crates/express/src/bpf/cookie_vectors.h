// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Numbers of cookies (cookie.h), for the fuzz target and for the tests in Rust, which read this file
// by its lines: the key, the halves of both addresses, the ports, the period, and the number for
// each segment size.

COOKIE_VECTOR(0x0706050403020100, 0x0f0e0d0c0b0a0908,
	      0x0000000000000000, 0x0200000affff0000,
	      0x0000000000000000, 0x0100000affff0000,
	      4000, 80, 0x0,
	      0x77e5266a, 0xbec43f36, 0x05a35802, 0x4c8270ce)
COOKIE_VECTOR(0x0706050403020100, 0x0f0e0d0c0b0a0908,
	      0x0000000000000000, 0x0200000affff0000,
	      0x0000000000000000, 0x0100000affff0000,
	      4000, 80, 0x1,
	      0x3e474c7b, 0x93a716ba, 0xe906e0f9, 0x3e66ab38)
COOKIE_VECTOR(0x0706050403020100, 0x0f0e0d0c0b0a0908,
	      0x0000000000000000, 0x0200000affff0000,
	      0x0000000000000000, 0x0100000affff0000,
	      65535, 443, 0xffffffff,
	      0x5c96648a, 0xf2cb23b8, 0x88ffe2e6, 0x1f34a214)
COOKIE_VECTOR(0x0706050403020100, 0x0f0e0d0c0b0a0908,
	      0x00000000000000fd, 0x0200000000000000,
	      0x00000000000000fd, 0x0100000000000000,
	      4000, 80, 0x1,
	      0x57ae5c87, 0x5867ad0b, 0x5920fd8f, 0x59da4e13)
COOKIE_VECTOR(0x123456789abcdef1, 0xfedcba9876543211,
	      0x02000100b80d0120, 0x0600050004000300,
	      0x00000000b80d0120, 0x0100000000000000,
	      1024, 8080, 0x1e240,
	      0xfe111838, 0x6a5a3583, 0xd6a352ce, 0x42ec7019)
