// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The fuzz target of the request parser: the code that runs in the kernel, in user space, where
// sanitizers watch every access. `cargo xtask fuzz express_request` builds and runs it.
#include <stdlib.h>

#include "request.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void hold(bool is_so)
{
	if (!is_so)
		abort();
}

// Reads a request behind which `left` stands: what a segment before has left in the memory.
static u32 read_over(struct reading *reading, const u8 *data, u32 bytes, u8 left)
{
	memset(reading, left, sizeof(*reading));
	memcpy(reading->text, data, bytes);
	return read_request(reading, bytes);
}

static bool is_graphic(u8 byte)
{
	return byte > 0x20 && byte < 0x7f;
}

// What the program takes for a target and a host stands in the text, whole and between its marks.
static void hold_key(const struct reading *reading, u32 bytes)
{
	const struct request *request = &reading->request;
	const u8 *text = reading->text;
	u32 target_end = request->target_start + request->target_bytes;
	u32 host_end = request->host_start + request->host_bytes;
	hold(request->target_bytes && request->target_bytes < TARGET_BYTES_MAX);
	hold(target_end < bytes && text[request->target_start] == '/' && text[target_end] == ' ');
	for (u32 at = request->target_start; at < target_end; at++)
		hold(is_graphic(text[at]) && text[at] != '#' && text[at] != '\\');
	hold(request->host_bytes && request->host_bytes <= HOST_BYTES_MAX);
	hold(host_end + 4 <= bytes && text[host_end] == '\r' && text[host_end + 1] == '\n');
	for (u32 at = request->host_start; at < host_end; at++)
		hold(is_graphic(text[at]) || text[at] == ' ');
	hold(!memcmp(text + bytes - 4, "\r\n\r\n", 4));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct reading reading, other;
	u32 bytes = size < TEXT_BYTES_MAX - 8 ? size : TEXT_BYTES_MAX - 8;
	u32 refusal = read_over(&reading, data, bytes, 0);
	for (const char *left = "\r\n a:\xff"; *left; left++) {
		// What stands behind the text decides nothing.
		hold(!refusal == !read_over(&other, data, bytes, *left));
		hold(refusal || !memcmp(&reading.request, &other.request, sizeof(other.request)));
	}
	hold(refusal <= REFUSAL_HOST);
	if (refusal == REFUSAL_NONE)
		hold_key(&reading, bytes);
	return 0;
}
