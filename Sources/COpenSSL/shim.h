#pragma once
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <pthread.h>

// One SHA-256 context per thread: making one costs as much as hashing 300 bytes with it. The digest is fetched once per
// process, since looking it up by name at each use halves the speed. The key's destructor frees a context with its thread.

static pthread_once_t seamesh_sha256_once = PTHREAD_ONCE_INIT;
static pthread_key_t seamesh_sha256_key;
static EVP_MD *seamesh_sha256_digest;

static inline void seamesh_sha256_free(void *context) { EVP_MD_CTX_free((EVP_MD_CTX *)context); }

static inline void seamesh_sha256_prepare(void) {
  if (pthread_key_create(&seamesh_sha256_key, seamesh_sha256_free) != 0) return;
  seamesh_sha256_digest = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static inline EVP_MD_CTX *seamesh_sha256_context(void) {
  pthread_once(&seamesh_sha256_once, seamesh_sha256_prepare);
  if (seamesh_sha256_digest == NULL) return NULL;
  EVP_MD_CTX *context = (EVP_MD_CTX *)pthread_getspecific(seamesh_sha256_key);
  if (context != NULL) return context;
  context = EVP_MD_CTX_new();
  if (context == NULL) return NULL;
  if (EVP_DigestInit_ex2(context, seamesh_sha256_digest, NULL) == 1
      && pthread_setspecific(seamesh_sha256_key, context) == 0) {
    return context;
  }
  EVP_MD_CTX_free(context);
  return NULL;
}

// Writes 32 bytes and answers 1, or 0 where OpenSSL could not (out of memory, no provider).
static inline int seamesh_sha256(const void *bytes, size_t count, unsigned char *digest) {
  EVP_MD_CTX *context = seamesh_sha256_context();
  return context != NULL && EVP_DigestInit_ex2(context, NULL, NULL) == 1
    && EVP_DigestUpdate(context, bytes, count) == 1 && EVP_DigestFinal_ex(context, digest, NULL) == 1;
}

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
