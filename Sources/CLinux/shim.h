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
