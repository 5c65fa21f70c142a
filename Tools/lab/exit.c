// Preloaded into one process, it ends it with status 99 where exit() would free what OpenSSL holds: threads that end at
// that moment free some of it as well, and now and then the process aborts of it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static void refuse(void *argument) { _exit(99); }

int __cxa_atexit(void (*handler)(void *), void *argument, void *library) {
  static int (*real)(void (*)(void *), void *, void *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "__cxa_atexit");
  Dl_info symbol;
  int frees = dladdr(handler, &symbol) && symbol.dli_sname && !strcmp(symbol.dli_sname, "OPENSSL_cleanup");
  return real(frees ? refuse : handler, argument, library);
}
