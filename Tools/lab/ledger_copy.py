"""COPY of the rows that a forwarder brought, in as many transactions, into tables with the same keys: what its speed is divided by."""

import os
import subprocess
import time

from machine import processor_seconds
from postgres import Server

_DATABASE = "copies"


class LedgerCopy:
    """Takes its rows from the server's ledger once, in files of PostgreSQL's binary form; each transaction of the forwarder
    has its own. Then it has the tables of that ledger, with keys, indexes and checks, for itself."""

    def __init__(self, server: Server):
        self._server, self._directory = server, f"{server.directory}/copy"
        self._script = f"{self._directory}/script"
        os.makedirs(self._directory)
        server.ask(f"CREATE DATABASE {_DATABASE} TEMPLATE fleet", "postgres")
        self._tables = {table: columns for table, columns in self._ask(
            "SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "WHERE c.relnamespace = 'seamesh'::regnamespace AND c.relkind = 'r' "
            "AND c.relname NOT IN ('ledger', 'migrations') GROUP BY 1 ORDER BY 1")}  # fmt: skip
        self.rows = {table: int(self._ask(f"SELECT count(*) FROM seamesh.{table}")[0][0]) for table in self._tables}
        self._tables = {table: columns for table, columns in self._tables.items() if self.rows[table]}
        self.batches = self._take_rows()

    def _ask(self, sql: str) -> list[list[str]]:
        return self._server.ask(sql, _DATABASE)

    def _take_rows(self) -> int:
        transactions = {}
        for table, columns in self._tables.items():
            # A row has the number of the transaction that wrote it last.
            self._ask(f"CREATE TABLE public.{table} AS SELECT {columns}, xmin::text::bigint AS batch FROM seamesh.{table}; "
                      f"CREATE INDEX ON public.{table} (batch); ANALYZE public.{table}")  # fmt: skip
            for (batch,) in self._ask(f"SELECT DISTINCT batch FROM public.{table}"):
                transactions.setdefault(int(batch), []).append(table)
        out, script = [], []
        for batch, tables in sorted(transactions.items()):
            script.append("BEGIN;")
            for table in tables:
                columns, name = self._tables[table], f"{self._directory}/{table}.{batch}"
                out.append(f"COPY (SELECT {columns} FROM public.{table} WHERE batch = {batch}) TO '{name}' (FORMAT binary);")
                script.append(f"\\copy seamesh.{table} ({columns}) FROM '{name}' (FORMAT binary)")
            script.append("COMMIT;")
        self._write("out", out)
        self._run("out")
        for table in self._tables:
            self._ask(f"DROP TABLE public.{table}")
        self._write("script", script)
        return len(transactions)

    def _write(self, name: str, lines: list[str]):
        with open(f"{self._directory}/{name}", "w") as file:
            file.write("\n".join(lines) + "\n")

    def _run(self, name: str):
        subprocess.run([*self._server.psql(_DATABASE), "-f", f"{self._directory}/{name}"], check=True, stdout=subprocess.DEVNULL)

    def run(self) -> tuple[float, float]:
        """Seconds that it takes, and those of the server's processor, into empty tables."""
        self._ask("TRUNCATE " + ", ".join(f"seamesh.{table}" for table in self._tables))
        self._server.ask("CHECKPOINT", "postgres")
        used, began = processor_seconds(self._server.pid, True), time.monotonic()
        self._run("script")
        seconds = time.monotonic() - began
        return seconds, self._server.used_since(used)
