#pragma once
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

// To be called before anything else of OpenSSL. Without it, exit() frees what OpenSSL holds while threads that end at
// that moment still free their own contexts, and the process aborts at its end now and then.
static inline int seamesh_openssl_prepare(void) { return OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL); }

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
static inline void seamesh_ssl_ctx_set_options(SSL_CTX *context) {
  // The last two extensions, and the middleboxes' fake session id, matter below TLS 1.3 only.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_ENCRYPT_THEN_MAC |
                                   SSL_OP_NO_EXTENDED_MASTER_SECRET);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
}
