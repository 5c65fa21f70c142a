// Linux headers that Swift's Glibc module leaves out.
#pragma once
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/vfs.h>
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

// The calling thread's name in the system's lists, which keep 15 bytes of it.
static inline void seamesh_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// The kind of file system that a file lies on, as statfs(2) numbers them; 0 where that is not known.
static inline unsigned int seamesh_file_system(const char *path) {
  struct statfs facts;
  return statfs(path, &facts) == 0 ? (unsigned int)facts.f_type : 0;
}

// Datagrams with the address that they were sent to, which comes beside them and by macros that Swift cannot use. The family of
// `destination` is 0 where the kernel did not say.
static inline int seamesh_tell_destinations(int descriptor, int is_ipv6) {
  int on = 1;
  // IPV6_RECVPKTINFO, which glibc hides.
  return is_ipv6 ? setsockopt(descriptor, IPPROTO_IPV6, 49, &on, sizeof on)
                 : setsockopt(descriptor, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
}

static inline long seamesh_receive_datagram(
    int descriptor, void *bytes, unsigned long count, struct sockaddr_storage *source,
    struct sockaddr_storage *destination, unsigned int *interface) {
  _Alignas(struct cmsghdr) char control[256];
  struct iovec piece = {bytes, count};
  struct msghdr message = {source, sizeof *source, &piece, 1, control, sizeof control, 0};
  *destination = (struct sockaddr_storage){0};
  *interface = 0;
  long received = recvmsg(descriptor, &message, 0);
  if (received < 0) return received;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
      // An in_pktinfo: the interface, the local address, the one in the datagram.
      struct sockaddr_in *form = (struct sockaddr_in *)destination;
      form->sin_family = AF_INET;
      __builtin_memcpy(interface, CMSG_DATA(header), sizeof *interface);
      __builtin_memcpy(&form->sin_addr, CMSG_DATA(header) + 8, sizeof form->sin_addr);
    } else if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == 50) {
      // IPV6_PKTINFO, an in6_pktinfo: the address in the datagram, the interface.
      struct sockaddr_in6 *form = (struct sockaddr_in6 *)destination;
      form->sin6_family = AF_INET6;
      __builtin_memcpy(&form->sin6_addr, CMSG_DATA(header), sizeof form->sin6_addr);
      __builtin_memcpy(interface, CMSG_DATA(header) + sizeof form->sin6_addr, sizeof *interface);
    }
  }
  return received;
}

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
