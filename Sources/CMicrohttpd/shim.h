// libmicrohttpd's variadic calls under names that Swift can import.
#pragma once
#include <microhttpd.h>
#include <stdbool.h>

/// Serves a listening socket, each connection on a thread of its own. NULL when the library refuses.
static inline struct MHD_Daemon *seamesh_http_start(
  int listener, unsigned int connection_limit, unsigned int idle_seconds, size_t connection_memory,
  MHD_AccessHandlerCallback answer, void *(*raw_target)(void *, const char *, struct MHD_Connection *),
  MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connection, void *context)
{
  return MHD_start_daemon(
    MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL,
    answer, context,
    MHD_OPTION_LISTEN_SOCKET, listener,
    MHD_OPTION_CONNECTION_LIMIT, connection_limit,
    MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds,
    MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,
    MHD_OPTION_URI_LOG_CALLBACK, raw_target, context,
    MHD_OPTION_NOTIFY_COMPLETED, completed, context,
    MHD_OPTION_NOTIFY_CONNECTION, connection, context,
    MHD_OPTION_END);
}

/// The connection's socket, -1 if there is none.
static inline int seamesh_http_socket(struct MHD_Connection *connection)
{
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

/// Whether a connection begins; otherwise it ends.
static inline bool seamesh_http_begins(enum MHD_ConnectionNotificationCode change)
{
  return change == MHD_CONNECTION_NOTIFY_STARTED;
}
