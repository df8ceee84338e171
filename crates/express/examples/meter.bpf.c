// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Measures the kernel's work on received frames (softirqs), for each process in whose time it was
// done, and apart for two interfaces. `meter.rs` loads it and reads its table.
//
// A softirq's time includes the programs here, an interface's does not: what the measurement itself
// costs counts as work that belongs to no interface.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u32 u32;
typedef __u64 u64;

#define NAME_BYTES 16

// The parts of the kernel's structures that are read, found by name.
struct net_device {
	char name[NAME_BYTES];
} __attribute__((preserve_access_index));

struct napi_struct {
	struct net_device *dev;
} __attribute__((preserve_access_index));

#define INTERFACES 2
// Processes in whose time frames were received: more are not counted.
#define PROCESSES_MAX 4096

struct name {
	union {
		char bytes[NAME_BYTES];
		u64 words[2];
	};
};

struct times {
	// All softirqs.
	u64 softirq_ns;
	// Those parts in which the driver took frames in from an interface, and how often it did.
	u64 poll_ns[INTERFACES];
	u64 polls[INTERFACES];
};

// What happens on a CPU now.
struct present {
	u64 softirq_begin_ns;
	// Since the softirq's begin, or the end of the driver's last work.
	u64 part_begin_ns;
	struct times times;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, INTERFACES);
	__type(key, u32);
	__type(value, struct name);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct present);
} presents SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, PROCESSES_MAX);
	__type(key, u32);
	__type(value, struct times);
} processes SEC(".maps");

static __always_inline struct present *present(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&presents, &zero);
}

static __always_inline _Bool is_named(u32 interface, const struct name *name)
{
	const struct name *known = bpf_map_lookup_elem(&names, &interface);
	return known && known->words[0] == name->words[0] && known->words[1] == name->words[1];
}

SEC("tp_btf/softirq_entry") int BPF_PROG(softirq_begins, unsigned int number)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct present *here = present();
	if (here) {
		__builtin_memset(&here->times, 0, sizeof(here->times));
		here->softirq_begin_ns = now_ns;
		here->part_begin_ns = bpf_ktime_get_ns();
	}
	return 0;
}

// The driver has taken frames in: what was done since the part before is work on them.
SEC("tp_btf/napi_poll") int BPF_PROG(poll_ends, struct napi_struct *napi)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct net_device *device = napi->dev;
	struct present *here = present();
	struct name name = {};
	if (!here)
		return 0;
#pragma unroll
	for (u32 at = 0; at < NAME_BYTES; at++)
		name.bytes[at] = device->name[at];
	for (u32 interface = 0; interface < INTERFACES; interface++) {
		if (!is_named(interface, &name))
			continue;
		here->times.poll_ns[interface] += now_ns - here->part_begin_ns;
		here->times.polls[interface]++;
	}
	here->part_begin_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_exit") int BPF_PROG(softirq_ends, unsigned int number)
{
	static const struct times zero;
	u32 process = bpf_get_current_pid_tgid() >> 32;
	struct present *here = present();
	struct times *times = bpf_map_lookup_elem(&processes, &process);
	if (!times) {
		bpf_map_update_elem(&processes, &process, &zero, BPF_NOEXIST);
		times = bpf_map_lookup_elem(&processes, &process);
	}
	if (!here || !times || !here->softirq_begin_ns)
		return 0;
	for (u32 interface = 0; interface < INTERFACES; interface++) {
		times->poll_ns[interface] += here->times.poll_ns[interface];
		times->polls[interface] += here->times.polls[interface];
	}
	times->softirq_ns += bpf_ktime_get_ns() - here->softirq_begin_ns;
	return 0;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
