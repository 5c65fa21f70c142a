// libcurl's variadic calls under names that Swift can import.
#pragma once
#include <curl/curl.h>

static inline CURLcode seamesh_curl_set_long(CURL *handle, CURLoption option, long value)
{
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode seamesh_curl_set_size(CURL *handle, CURLoption option, curl_off_t value)
{
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode seamesh_curl_set_string(CURL *handle, CURLoption option, const char *value)
{
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode seamesh_curl_set_pointer(CURL *handle, CURLoption option, void *value)
{
  return curl_easy_setopt(handle, option, value);
}

typedef size_t (*seamesh_curl_receiver)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode seamesh_curl_set_receiver(CURL *handle, CURLoption option, seamesh_curl_receiver receiver)
{
  return curl_easy_setopt(handle, option, receiver);
}

static inline CURLcode seamesh_curl_get_long(CURL *handle, CURLINFO info, long *value)
{
  return curl_easy_getinfo(handle, info, value);
}

typedef int (*seamesh_curl_progress)(
  void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up);

static inline CURLcode seamesh_curl_set_progress(CURL *handle, CURLoption option, seamesh_curl_progress progress)
{
  return curl_easy_setopt(handle, option, progress);
}
