// Linux headers that Swift's Glibc module leaves out.
#pragma once
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <net/if.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

// `struct ucred` is hidden from Swift without _GNU_SOURCE: the same layout under a name of our own.
struct seamesh_peer_credentials {
  int process;
  unsigned int user;
  unsigned int group;
};

// Declared by glibc for _GNU_SOURCE alone.
extern int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags);

// The kernel's `struct tcp_info`: glibc's ends long before the numbers of bytes, and linux/tcp.h clashes with glibc's header.
// The same layout up to `bytes_retransmitted` (Linux 4.19) under a name of our own.
struct seamesh_tcp_numbers {
  unsigned char state, congestion_state, retransmits, probes, backoff, options, window_scales, flags;
  unsigned int retransmission_timeout, ack_timeout, sent_segment_size, received_segment_size;
  unsigned int unacknowledged, selectively_acknowledged, lost, retransmitted, forward_acknowledged;
  unsigned int since_data_sent, since_ack_sent, since_data_received, since_ack_received;
  unsigned int path_mtu, receive_threshold, round_trip, round_trip_variance, send_threshold, send_window;
  unsigned int advertised_segment_size, reordering, receive_round_trip, receive_space, all_retransmitted;
  unsigned long long pacing_rate, highest_pacing_rate, bytes_acknowledged, bytes_received;
  unsigned int segments_out, segments_in, bytes_not_sent, least_round_trip, data_segments_in, data_segments_out;
  unsigned long long delivery_rate, busy_time, limited_by_window, limited_by_buffer;
  unsigned int delivered, delivered_marked;
  unsigned long long bytes_sent, bytes_retransmitted;
};
