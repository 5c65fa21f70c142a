#pragma once
#include <sqlite3.h>

// sqlite3_config is variadic, so Swift cannot call it. Counting every allocation costs a lock and buys nothing here.
static inline int seamesh_sqlite_memory_status_off(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
