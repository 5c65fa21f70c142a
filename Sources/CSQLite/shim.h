#pragma once
#include <sqlite3.h>

// sqlite3_config is variadic, so Swift cannot call it. Counting every allocation costs a lock and buys nothing here.
static inline int seamesh_sqlite_memory_status_off(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

// sqlite3_db_config is variadic too.
static inline int seamesh_sqlite_checkpoint_on_close(sqlite3 *database, int is_on) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !is_on, (int *)0);
}

// File controls of our own, for file layers that are no system's: SQLite leaves numbers above 100 to layers.
// The open file gets the name that the argument, a `const char *`, ends in.
#define SEAMESH_FCNTL_RENAME 20001
// The names of the directory are on disk when it returns. No argument.
#define SEAMESH_FCNTL_SYNC_NAMES 20002
