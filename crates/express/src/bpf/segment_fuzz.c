// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The fuzz target of the whole program: any frame, in user space, where sanitizers watch every
// access. The first byte of an input says what the rest is: a whole frame, the options of a SYN, or
// flags, options and text of a segment on a connection of ours. What is passed must be as it came,
// what is dropped must be an acknowledgement, and what is sent back must be right. The clock is read
// once for a segment, and sockets are looked up once at most.
// `cargo xtask fuzz express_segment` builds and runs it.
#include "express.bpf.c"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static struct slot slots[WAYS];
static struct settings fuzz_settings;
static struct drop_bucket bucket;
static struct counters fuzz_counters;
static struct room fuzz_room;
static struct sampling fuzz_sampling;
static u64 marks[PASSED_MAX];

static void *map_lookup(const void *map, u32 key)
{
	if (map == &answers)
		return &slots[key & (WAYS - 1)];
	if (map == &settings)
		return &fuzz_settings;
	if (map == &drops)
		return &bucket;
	if (map == &counters)
		return &fuzz_counters;
	if (map == &readings)
		return &fuzz_room;
	if (map == &sampling)
		return &fuzz_sampling;
	return &marks[key & (PASSED_MAX - 1)];
}

int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk,
			    struct bpf_tcp_req_attrs *attrs, int attrs__sz)
{
	return -1;
}

static void hold(bool is_so)
{
	if (!is_so)
		abort();
}

#define CLIENT_NUMBER 1000000
#define PORT 80
static const char ANSWER[] = "HTTP/1.1 200 OK\r\n\r\nhello";
#define NOTE 17
static const char REQUEST[] = "GET /a HTTP/1.0\r\nHost: x\r\n\r\n";

#define IPV4_AT ETH_HLEN
#define TCP_AT (ETH_HLEN + sizeof(struct iphdr))
#define TEXT_AT (TCP_AT + TCP_HEADER_BYTES)

static u16 sum_of_bytes(const u8 *bytes, u32 count, u64 sum)
{
	for (u32 at = 0; at < count; at += 2)
		sum += bytes[at] | (at + 1 < count ? bytes[at + 1] << 8 : 0);
	return fold(sum);
}

// The sum of the TCP segment of an IPv4 frame, with its pseudo header: 0xffff where it is right.
static u16 tcp_sum(const u8 *frame, u32 bytes)
{
	u32 tcp_bytes = bytes - TCP_AT;
	u64 pseudo = bpf_htons(IPPROTO_TCP) + (u64)bpf_htons(tcp_bytes);
	return sum_of_bytes(frame + TCP_AT, tcp_bytes,
			    sum_of_bytes(frame + IPV4_AT + 12, 8, pseudo));
}

// Makes a frame of IPv4; returns its bytes.
static u32 make(u8 *frame, u8 flags, u32 acknowledgement, const u8 *more, u32 option_bytes,
		u32 more_bytes)
{
	u32 bytes = TEXT_AT + more_bytes;
	struct ethhdr *ethernet = (void *)frame;
	struct iphdr *ip = (void *)(frame + IPV4_AT);
	struct tcphdr *tcp = (void *)(frame + TCP_AT);
	memset(frame, 0, TEXT_AT);
	memcpy(frame + TEXT_AT, more, more_bytes);
	ethernet->h_proto = bpf_htons(ETH_P_IP);
	ip->version = 4;
	ip->ihl = 5;
	ip->protocol = IPPROTO_TCP;
	ip->tot_len = bpf_htons(bytes - IPV4_AT);
	ip->saddr = bpf_htonl(0x0a000002);
	ip->daddr = bpf_htonl(0x0a000001);
	ip->check = ~sum_of_bytes(frame + IPV4_AT, sizeof(*ip), 0);
	tcp->source = bpf_htons(4000);
	tcp->dest = bpf_htons(PORT);
	tcp->seq = bpf_htonl(CLIENT_NUMBER + !(flags & TCP_SYN));
	tcp->ack_seq = bpf_htonl(acknowledgement);
	tcp->doff = (TCP_HEADER_BYTES + option_bytes) / 4;
	frame[TCP_AT + TCP_FLAGS_AT] = flags;
	tcp->window = bpf_htons(64240);
	tcp->check = ~tcp_sum(frame, bytes);
	return bytes;
}

// Publishes one answer, as the serving process does.
static void publish(void)
{
	struct answer *answer = &slots[0].answer;
	struct segment segment = { .destination_port = PORT };
	segment.destination[1] = mapped_ipv4(bpf_htonl(0x0a000001));
	fuzz_settings.answers_syn = fuzz_settings.answers_requests = 1;
	fuzz_settings.slot_mask = WAYS - 1;
	fuzz_settings.port_count = 1;
	fuzz_settings.ports[0] = PORT;
	memcpy(fuzz_room.reading.text, REQUEST, sizeof(REQUEST) - 1);
	hold(!read_request(&fuzz_room.reading, sizeof(REQUEST) - 1));
	answer->digest = key_digest(&fuzz_settings, &segment, &fuzz_room.reading);
	// Every request is sampled.
	answer->flags = ~0U << ANSWER_CHANCE_SHIFT;
	answer->note = NOTE;
	answer->expires_ns = ~0ULL;
	answer->host_bytes = 1;
	answer->target_bytes = 2;
	answer->answer_bytes = sizeof(ANSWER) - 1;
	answer->sum = sum_of_bytes((const u8 *)ANSWER, sizeof(ANSWER) - 1, 0);
	answer->address[1] = segment.destination[1];
	answer->port = PORT;
	memcpy(answer->host, "x", 1);
	memcpy(answer->target, "/a", 2);
	memcpy(answer->bytes, ANSWER, sizeof(ANSWER) - 1);
}

// The numbers of cookies are those that the tests in Rust expect too.
static void hold_cookie(u64 key, u64 more_key, struct segment segment, u64 period,
			const u32 *numbers)
{
	struct settings settings = { .cookie_key = { key, more_key } };
	segment.is_ipv6 = segment.source[0] != 0;
	u64 hash = cookie_hash(&settings, &segment, period);
	for (u32 number = 0; number < SEGMENT_SIZES; number++)
		hold(cookie_number(hash, number) == numbers[number]);
}

static void hold_cookies(void)
{
#define COOKIE_VECTOR(key, more_key, source_0, source_1, destination_0, destination_1, from, to,   \
		      period, ...)                                                                \
	hold_cookie(key, more_key,                                                                \
		    (struct segment){ .source = { source_0, source_1 },                           \
				      .destination = { destination_0, destination_1 },            \
				      .source_port = from,                                        \
				      .destination_port = to },                                   \
		    period, (const u32[SEGMENT_SIZES]){ __VA_ARGS__ });
#include "cookie_vectors.h"
}

static int run(const u8 *frame, u32 bytes, struct xdp_md *context)
{
	show_frame(context, FUZZ_HEAD_ROOM, FUZZ_HEAD_ROOM + bytes);
	memcpy((u8 *)context->data, frame, bytes);
	clock_reads = socket_lookups = sample_count = 0;
	fuzz_sampling.samples = 0;
	int verdict = express(context);
	hold(clock_reads <= 1 && socket_lookups <= 1);
	return verdict;
}

// What is told of a request that was answered: its text, as it came.
static void hold_sample(const u8 *frame, u32 bytes, u32 sent_at)
{
	struct sample sample;
	hold(sample_count == 1 && sample_bytes == sizeof(sample) + bytes - sent_at);
	memcpy(&sample, sample_room, sizeof(sample));
	hold(sample.note == NOTE && sample.answer_bytes == sizeof(ANSWER) - 1);
	hold(sample.destination_port == PORT && sample.source_port == 4000);
	hold(!memcmp(sample_room + sizeof(sample), frame + sent_at, bytes - sent_at));
}

// What comes back to an IPv4 frame of ours.
static void hold_reply(const u8 *frame, u32 bytes, const struct xdp_md *context)
{
	const u8 *reply = (const u8 *)context->data;
	u32 reply_bytes = context->data_end - context->data;
	u32 text_at = TCP_AT + (reply[TCP_AT + 12] >> 4) * 4;
	u8 flags = frame[TCP_AT + TCP_FLAGS_AT];
	u32 sent_at = TCP_AT + (frame[TCP_AT + 12] >> 4) * 4;
	hold(sum_of_bytes(reply + IPV4_AT, sizeof(struct iphdr), 0) == 0xffff);
	hold(tcp_sum(reply, reply_bytes) == 0xffff);
	hold(!memcmp(reply + IPV4_AT + 12, frame + IPV4_AT + 16, 4));
	hold(!memcmp(reply + IPV4_AT + 16, frame + IPV4_AT + 12, 4));
	if (flags & TCP_SYN || bytes == sent_at) {
		hold(reply_bytes == text_at && flags & (TCP_SYN | TCP_FIN));
		return;
	}
	hold_sample(frame, bytes, sent_at);
	hold(reply_bytes - text_at == sizeof(ANSWER) - 1);
	hold(!memcmp(reply + text_at, ANSWER, sizeof(ANSWER) - 1));
	hold(!memcmp(frame + sent_at, "GET /a HTTP/1.", 14));
}

// `is_made`: the frame is one of `make`, with all in its place.
static void hold_verdict(const u8 *frame, u32 bytes, bool is_made)
{
	struct xdp_md context;
	int verdict = run(frame, bytes, &context);
	hold(verdict == XDP_TX || !sample_count);
	if (verdict == XDP_PASS) {
		hold(context.data_end - context.data == bytes);
		hold(!memcmp((void *)context.data, frame, bytes));
	} else if (is_made && verdict == XDP_DROP) {
		u8 flags = frame[TCP_AT + TCP_FLAGS_AT];
		hold((flags & (TCP_SYN | TCP_FIN | 4 | TCP_ACK)) == TCP_ACK);
		hold(bytes == TCP_AT + (frame[TCP_AT + 12] >> 4) * 4U);
	} else if (is_made) {
		hold(verdict == XDP_TX);
		hold_reply(frame, bytes, &context);
	} else {
		hold(verdict == XDP_TX || verdict == XDP_DROP);
	}
	struct __sk_buff skb = { .data = context.data, .data_end = context.data_end };
	skb.len = skb.data_end - skb.data;
	hold(hand_over(&skb) == PASS_ON);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static u8 frame[FUZZ_FRAME_BYTES_MAX];
	struct xdp_md context;
	if (size < 3 || size > TEXT_BYTES_MAX)
		return 0;
	if (!fuzz_settings.port_count) {
		hold_cookies();
		publish();
	}
	memset(marks, 0, sizeof(marks));
	u8 kind = data[0], flags = data[1];
	u32 option_bytes = data[2] & 0x3c;
	data += 3;
	size -= 3;
	if (option_bytes > TCP_OPTIONS_BYTES_MAX || option_bytes > size)
		option_bytes = size < TCP_OPTIONS_BYTES_MAX ? size & ~3U : TCP_OPTIONS_BYTES_MAX;
	if (kind % 3 == 0) {
		memcpy(frame, data, size);
		if (size >= ETH_HLEN)
			hold_verdict(frame, size, false);
	} else if (kind % 3 == 1) {
		hold_verdict(frame, make(frame, TCP_SYN, 0, data, option_bytes, size), true);
	} else {
		static const u8 options[] = { 2, 4, 5, 180 };
		u32 bytes = make(frame, TCP_SYN, 0, options, sizeof(options), sizeof(options));
		hold(run(frame, bytes, &context) == XDP_TX);
		struct tcphdr *tcp = (void *)(context.data + TCP_AT);
		u32 number = bpf_ntohl(tcp->seq) + 1;
		hold_verdict(frame, make(frame, flags, number, data, option_bytes, size), true);
	}
	return 0;
}
