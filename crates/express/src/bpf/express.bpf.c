// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The express lane: answers requests for small, hot objects in the network driver, without a
// connection in the kernel. It speaks just enough TCP, and keeps next to no state:
//
//   SYN                      a SYN-ACK with a cookie (cookie.h)
//   ACK                      dropped: the cookie comes again with the request
//   request, answer at hand  the whole answer with FIN, in one segment
//   FIN                      its acknowledgement
//   any other request        passed on; at the ingress of tc, `hand_over` has the listener accept
//                            the connection that the cookie began, at that very segment
//
// All else is passed, what belongs to a socket of the kernel or is not plain, except segments of
// clients that the lanes have refused too often (drop.h). Kept are a list of those, and a mark of
// each connection whose first segment was just passed on (`note_passed`).
//
// The compiled object is committed, so that building the server needs no clang: see
// `cargo xtask bpf`.
#include "answer.h"
#include "drop.h"
#include "sample.h"

// The kernel's, of which only the name matters here.
struct sock {
	int unused;
};

// The next program of tcx decides (TCX_NEXT, Linux 6.6).
#define PASS_ON (-1)

// Linux 6.9. Its layout is the kernel's (include/net/tcp.h, struct bpf_tcp_req_attrs).
struct bpf_tcp_req_attrs {
	u32 rcv_tsval;
	u32 rcv_tsecr;
	u16 mss;
	u8 rcv_wscale;
	u8 snd_wscale;
	u8 ecn_ok;
	u8 wscale_ok;
	u8 sack_ok;
	u8 tstamp_ok;
	u8 usec_ts_ok;
	u8 reserved[3];
};

extern int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk,
				   struct bpf_tcp_req_attrs *attrs, int attrs__sz) __ksym;

// The least segment size that the kernel takes with a cookie of IPv6: of its minimum MTU.
#define IPV6_SEGMENT_SIZE_MIN 1220

INLINE u32 fill_tuple(struct bpf_sock_tuple *tuple, const struct segment *segment)
{
	u16 source_port = bpf_htons(segment->source_port);
	u16 destination_port = bpf_htons(segment->destination_port);
	if (segment->is_ipv6) {
		__builtin_memcpy(tuple->ipv6.saddr, segment->source, 16);
		__builtin_memcpy(tuple->ipv6.daddr, segment->destination, 16);
		tuple->ipv6.sport = source_port;
		tuple->ipv6.dport = destination_port;
		return sizeof(tuple->ipv6);
	}
	tuple->ipv4.saddr = segment->source[1] >> 32;
	tuple->ipv4.daddr = segment->destination[1] >> 32;
	tuple->ipv4.sport = source_port;
	tuple->ipv4.dport = destination_port;
	return sizeof(tuple->ipv4);
}

// The socket of a segment: a connection, or else a listener. To be released.
INLINE struct bpf_sock *look_up(void *context, const struct segment *segment)
{
	struct bpf_sock_tuple tuple = {};
	if (segment->is_ipv6) {
		fill_tuple(&tuple, segment);
		return bpf_skc_lookup_tcp(context, &tuple, sizeof(tuple.ipv6),
					  BPF_F_CURRENT_NETNS, 0);
	}
	fill_tuple(&tuple, segment);
	return bpf_skc_lookup_tcp(context, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
}

// Whether the kernel has a connection between these addresses.
INLINE bool has_connection(void *context, const struct segment *segment)
{
	struct bpf_sock *socket = look_up(context, segment);
	if (!socket)
		return false;
	bool is_connection = socket->state != BPF_TCP_LISTEN;
	bpf_sk_release(socket);
	return is_connection;
}

// A mark of a connection and of the time, in units of about a second in its lowest byte.
#define MARK_TIME 0xffULL
#define MARK_TIME_SHIFT 30

INLINE u64 mark_of(const struct segment *segment)
{
	u64 ports = (u64)segment->source_port << 16 | segment->destination_port;
	// Fibonacci hashing: the multiplier is 2^64 divided by the golden ratio.
	return (segment->source[0] ^ segment->source[1] ^ ports) * 0x9e3779b97f4a7c15ULL;
}

INLINE u64 *place_of(u64 mark)
{
	u32 place = mark >> (64 - PASSED_SHIFT);
	return bpf_map_lookup_elem(&passed, &place);
}

INLINE void note_passed(const struct segment *segment)
{
	u64 mark = mark_of(segment);
	u64 *place = place_of(mark);
	if (place)
		*place = (mark & ~MARK_TIME) | ((segment->now_ns >> MARK_TIME_SHIFT) & MARK_TIME);
}

// Whether the first segment of this connection was passed on in this second or the one before.
INLINE bool was_passed(const struct segment *segment)
{
	u64 mark = mark_of(segment);
	u64 *place = place_of(mark);
	if (!place || (*place ^ mark) & ~MARK_TIME)
		return false;
	return (((segment->now_ns >> MARK_TIME_SHIFT) - *place) & MARK_TIME) <= 1;
}

INLINE void *frame_start(struct xdp_md *context)
{
	return (void *)(long)context->data;
}

INLINE void *frame_end(struct xdp_md *context)
{
	return (void *)(long)context->data_end;
}

// Whether the checksum of an IPv4 header without options is right (RFC 791 section 3.1).
INLINE bool has_header_checksum(void *data, void *end, const struct segment *segment)
{
	u64 ip_at = segment->ip_at;
	if (!is_bounded(&ip_at))
		return false;
	u32 *words = data + ip_at;
	u64 sum = 0;
	if ((void *)(words + sizeof(struct iphdr) / 4) > end)
		return false;
#pragma unroll
	for (u32 word = 0; word < sizeof(struct iphdr) / 4; word++)
		sum += words[word];
	return fold(sum) == 0xffff;
}

// Whether a segment's checksums are right. That of TCP may be left to be filled in by a card that
// never sees it: then it is the sum of the pseudo header (frames of this very machine).
INLINE bool has_checksum(void *data, void *end, const struct segment *segment,
			 struct reading *reading)
{
	u64 tcp_at = segment->tcp_at;
	if (!is_bounded(&tcp_at))
		return false;
	if (!segment->is_ipv6 && !has_header_checksum(data, end, segment))
		return false;
	struct tcphdr *tcp = data + tcp_at;
	u32 header_words = (segment->text_at - segment->tcp_at) / 4;
	if ((void *)(tcp + 1) > end)
		return false;
	u64 pseudo = pseudo_header_sum(segment, segment->frame_bytes - segment->tcp_at);
	if (tcp->check == fold(pseudo))
		return true;
	u64 sum = pseudo + text_sum(reading, segment->text_bytes);
	u32 *words = (void *)tcp;
	for (u32 word = 0; word < (TCP_HEADER_BYTES + TCP_OPTIONS_BYTES_MAX) / 4; word++) {
		if (word >= header_words)
			break;
		if ((void *)(words + word + 1) > end)
			return false;
		sum += words[word];
	}
	return fold(sum) == 0xffff;
}

INLINE u64 sum_of(const struct answered_options *options)
{
	u64 sum = 0;
#pragma unroll
	for (u32 word = 0; word < TCP_OPTIONS_BYTES_MAX / 4; word++)
		sum += options->words[word];
	return sum;
}

INLINE int pass_syn(void)
{
	count(COUNT_SYN_PASSED);
	return XDP_PASS;
}

INLINE int answer_syn(struct xdp_md *context, const struct settings *settings,
		      struct segment *segment, struct reading *reading)
{
	struct syn_options options = {};
	struct answered_options answered = {};
	u32 bytes = segment->text_at - segment->tcp_at - TCP_HEADER_BYTES;
	// Text in a SYN (RFC 7413) is the kernel's.
	if (!settings->answers_syn || segment->text_bytes || bytes < 4 ||
	    bytes > TCP_OPTIONS_BYTES_MAX)
		return pass_syn();
	u32 options_at = segment->tcp_at + TCP_HEADER_BYTES;
	if (bpf_xdp_load_bytes(context, options_at, reading->text, bytes) ||
	    !read_syn_options(reading, bytes, &options))
		return pass_syn();
	u32 least = segment->is_ipv6 ? IPV6_SEGMENT_SIZE_MIN : SEGMENT_SIZE_0;
	if (options.segment_size < least || has_connection(context, segment) ||
	    !has_checksum(frame_start(context), frame_end(context), segment, reading))
		return pass_syn();
	u32 ours = segment->is_ipv6 ? SEGMENT_SIZE_2 : SEGMENT_SIZE_3;
	answer_options(&options, ours, segment->now_ns, &answered);
	if (bpf_xdp_store_bytes(context, options_at, &answered, bytes))
		return pass_syn();
	u64 hash = cookie_hash(settings, segment, cookie_period(segment));
	u32 number = cookie_number(hash, segment_size_number(options.segment_size));
	struct reply reply = {
		.sequence = segment->sequence + number,
		.acknowledgement = segment->sequence + 1,
		.flags = TCP_SYN | TCP_ACK,
		.tcp_bytes = TCP_HEADER_BYTES + bytes,
		.sum = sum_of(&answered),
	};
	if (!turn_round(frame_start(context), frame_end(context), segment, &reply))
		return XDP_DROP;
	count(COUNT_SYN_ANSWERED);
	return XDP_TX;
}

// Answers a FIN without text: with a FIN of ours where we have sent none yet.
INLINE int answer_fin(struct xdp_md *context, const struct segment *segment,
		      const struct cookie *cookie, const struct timestamps *timestamps)
{
	struct reply reply = {
		.sequence = segment->acknowledgement,
		.acknowledgement = segment->sequence + 1,
		.flags = cookie->relation == RELATION_FIRST ? TCP_FIN | TCP_ACK : TCP_ACK,
		.tcp_bytes = segment->text_at - segment->tcp_at,
	};
	void *data = frame_start(context);
	void *end = frame_end(context);
	reply.sum = answer_timestamps(data, end, segment, timestamps);
	if (!turn_round(data, end, segment, &reply))
		return XDP_DROP;
	count(COUNT_FIN_ANSWERED);
	return XDP_TX;
}

INLINE int miss(u32 counter)
{
	count(counter);
	return XDP_PASS;
}

// Copies a segment's text to where it can be read by any index.
INLINE bool copy_text(struct xdp_md *context, const struct segment *segment,
		      struct reading *reading)
{
	u64 bytes = segment->text_bytes;
	FORGET(bytes);
	if (!bytes || bytes > TEXT_BYTES_MAX - 8)
		return false;
	if (bpf_xdp_load_bytes(context, segment->text_at, reading->text, bytes))
		return false;
	// The checksum is over whole words.
	*(u32 *)(reading->text + (bytes & (TEXT_BYTES_MAX - 1))) = 0;
	return true;
}

// Sends an answer that was found.
INLINE int send_answer(struct xdp_md *context, const struct settings *settings,
		       const struct segment *segment, struct reading *reading,
		       const struct timestamps *timestamps, struct slot *slot, u64 version)
{
	struct answer *answer = &slot->answer;
	u32 bytes = answer->answer_bytes;
	u32 sum = answer->sum;
	u32 flags = answer->flags;
	u64 generation = answer->generation;
	u64 note = answer->note;
	if (!bytes || bytes > ANSWER_BYTES_MAX)
		return miss(COUNT_MISS_CHANGING);
	if (!resize(context, segment, reading, segment->text_at + bytes))
		return miss(COUNT_MISS_ROOM);
	if (bpf_xdp_store_bytes(context, segment->text_at, answer->bytes, bytes) ||
	    version_of(answer) != version) {
		count(COUNT_DROPPED_CHANGING);
		return XDP_DROP;
	}
	struct reply reply = {
		.sequence = segment->acknowledgement,
		.acknowledgement = segment->sequence + segment->text_bytes + segment->fin,
		.flags = TCP_ACK | TCP_PUSH | TCP_FIN,
		.tcp_bytes = segment->text_at - segment->tcp_at + bytes,
	};
	void *data = frame_start(context);
	void *end = frame_end(context);
	reply.sum = sum + answer_timestamps(data, end, segment, timestamps);
	if (!turn_round(data, end, segment, &reply))
		return XDP_DROP;
	slot->hits++;
	count(COUNT_HITS);
	count_many(COUNT_HIT_BYTES, bytes);
	if (is_drawn(settings, segment, flags))
		add_sample(segment, generation, note, bytes);
	return XDP_TX;
}

INLINE int answer_request(struct xdp_md *context, const struct settings *settings,
			  struct segment *segment, const struct cookie *cookie,
			  const struct timestamps *timestamps, struct reading *reading)
{
	if (!settings->answers_requests)
		return XDP_PASS;
	if (!copy_text(context, segment, reading))
		return miss(COUNT_REFUSED + REFUSAL_INCOMPLETE);
	u32 refusal = read_request(reading, segment->text_bytes);
	if (refusal)
		return miss(COUNT_REFUSED + refusal);
	u64 version = 0;
	struct slot *slot = find_slot(settings, segment, reading, &version);
	if (!slot)
		return miss(COUNT_MISS_KEY);
	u32 verdict = judge(settings, &slot->answer, segment, reading);
	if (verdict == COUNT_HITS)
		verdict = judge_size(slot->answer.answer_bytes, segment, cookie, timestamps);
	if (version & 1)
		verdict = COUNT_MISS_CHANGING;
	if (verdict != COUNT_HITS)
		return miss(verdict);
	if (!has_checksum(frame_start(context), frame_end(context), segment, reading))
		return miss(COUNT_MISS_CHECKSUM);
	if (has_connection(context, segment))
		return miss(COUNT_MISS_SOCKET);
	return send_answer(context, settings, segment, reading, timestamps, slot, version);
}

// A segment that is no SYN.
INLINE int take_later(struct xdp_md *context, const struct settings *settings,
		      struct segment *segment, struct reading *reading)
{
	struct timestamps timestamps = {};
	struct cookie cookie = {};
	if (!segment->ack || segment->urg ||
	    !read_timestamps(frame_start(context), frame_end(context), segment, &timestamps))
		return XDP_PASS;
	check_cookie(settings, segment, &cookie);
	if (cookie.relation == RELATION_NONE)
		return XDP_PASS;
	if (segment->text_bytes) {
		if (cookie.relation != RELATION_FIRST)
			return XDP_PASS;
		int verdict = answer_request(context, settings, segment, &cookie, &timestamps,
					     reading);
		if (verdict == XDP_PASS)
			note_passed(segment);
		return verdict;
	}
	// The end of the handshake says nothing that the next segment does not say again.
	if (!segment->fin && cookie.relation == RELATION_FIRST) {
		count(COUNT_ACKNOWLEDGED);
		return XDP_DROP;
	}
	if (has_connection(context, segment) ||
	    !has_checksum(frame_start(context), frame_end(context), segment, reading))
		return XDP_PASS;
	if (segment->fin && was_passed(segment))
		return XDP_PASS;
	if (segment->fin)
		return answer_fin(context, segment, &cookie, &timestamps);
	count(COUNT_ACKNOWLEDGED);
	return XDP_DROP;
}

SEC("xdp") int express(struct xdp_md *context)
{
	struct segment segment = {};
	void *data = frame_start(context);
	void *end = frame_end(context);
	if (!find_segment(data, end, end - data, &segment))
		return XDP_PASS;
	struct settings *settings = settings_in_force();
	struct reading *reading = reading_room();
	if (!settings || !reading)
		return XDP_PASS;
	enum gate gate = gate_of(settings, &segment);
	if (gate == GATE_NONE)
		return XDP_PASS;
	segment.now_ns = bpf_ktime_get_ns();
	if (settings->drops && is_dropped(settings, &segment)) {
		count(COUNT_DROPPED_CLIENT);
		return XDP_DROP;
	}
	if (gate != GATE_ANSWERS || segment.rst)
		return XDP_PASS;
	if (segment.syn)
		return segment.ack || segment.fin ? XDP_PASS
						  : answer_syn(context, settings, &segment, reading);
	return take_later(context, settings, &segment, reading);
}

INLINE void fill_attributes(struct bpf_tcp_req_attrs *attributes, const struct cookie *cookie,
			    const struct timestamps *timestamps)
{
	u32 scale = timestamps->echo & CARRIED_SCALE;
	attributes->mss = cookie->segment_size;
	if (!timestamps->present)
		return;
	attributes->tstamp_ok = 1;
	attributes->rcv_tsval = timestamps->value;
	attributes->rcv_tsecr = timestamps->echo;
	attributes->sack_ok = !!(timestamps->echo & CARRIED_MAY_SACK);
	if (scale == CARRIED_NO_SCALE)
		return;
	attributes->wscale_ok = 1;
	attributes->snd_wscale = scale;
	attributes->rcv_wscale = OUR_WINDOW_SCALE;
}

// Gives the segment to the listener, as the first of an accepted connection.
INLINE void assign(struct __sk_buff *skb, const struct segment *segment,
		   struct bpf_tcp_req_attrs *attributes)
{
	struct bpf_sock *socket = look_up(skb, segment);
	if (!socket)
		return;
	if (socket->state == BPF_TCP_LISTEN) {
		struct tcp_sock *listener = bpf_skc_to_tcp_sock(socket);
		if (listener) {
			int error = bpf_sk_assign_tcp_reqsk(skb, (struct sock *)listener,
							    attributes, sizeof(*attributes));
			count(error ? COUNT_HANDOVER_FAILED : COUNT_HANDED_OVER);
		}
	}
	bpf_sk_release(socket);
}

SEC("tc") int hand_over(struct __sk_buff *skb)
{
	struct segment segment = {};
	struct timestamps timestamps = {};
	struct cookie cookie = {};
	struct bpf_tcp_req_attrs attributes = {};
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	if (!find_segment(data, end, skb->len, &segment))
		return PASS_ON;
	struct settings *settings = settings_in_force();
	if (!settings || segment.syn || segment.rst || !segment.ack ||
	    gate_of(settings, &segment) != GATE_ANSWERS ||
	    !read_timestamps(data, end, &segment, &timestamps))
		return PASS_ON;
	segment.now_ns = bpf_ktime_get_ns();
	check_cookie(settings, &segment, &cookie);
	if (cookie.relation != RELATION_FIRST)
		return PASS_ON;
	fill_attributes(&attributes, &cookie, &timestamps);
	assign(skb, &segment, &attributes);
	return PASS_ON;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
