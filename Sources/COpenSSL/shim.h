#pragma once
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

// Transport: macros of libssl that Swift cannot see.
static inline int seamesh_ssl_ctx_require_tls13(SSL_CTX *context) {
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) && SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
}
static inline int seamesh_ssl_ctx_set_groups(SSL_CTX *context, const char *list) {
  return SSL_CTX_set1_groups_list(context, list) == 1;
}
static inline int seamesh_ssl_ctx_set_signature_algorithms(SSL_CTX *context, const char *list) {
  return SSL_CTX_set1_sigalgs_list(context, list) == 1 && SSL_CTX_set1_client_sigalgs_list(context, list) == 1;
}
static inline void seamesh_ssl_ctx_set_partial_writes(SSL_CTX *context) {
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
static inline void seamesh_ssl_ctx_disable_session_cache(SSL_CTX *context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}
static inline void seamesh_ssl_ctx_set_read_ahead(SSL_CTX *context) { SSL_CTX_set_read_ahead(context, 1); }
static inline void seamesh_ssl_ctx_set_certificate_list_limit(SSL_CTX *context, long limit) {
  SSL_CTX_set_max_cert_list(context, limit);
}
