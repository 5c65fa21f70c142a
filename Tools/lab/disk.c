// Preloaded into one process, it has each sync of a file take LAB_SYNC_MILLISECONDS longer.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void wait(void) {
  const char *text = getenv("LAB_SYNC_MILLISECONDS");
  long milliseconds = text ? atol(text) : 0;
  struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&rest, &rest) && errno == EINTR) {
  }
}

int fsync(int file) {
  static int (*real)(int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fsync");
  wait();
  return real(file);
}

int fdatasync(int file) {
  static int (*real)(int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
  wait();
  return real(file);
}
