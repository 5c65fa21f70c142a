extension PostgreSQLSchema {
  static let holdRelay8 = """
    -- Which process speaks for a relay, and which did before it. Of a machine that was copied two go on at once.
    CREATE TABLE seamesh.relays (
      relay     bytea PRIMARY KEY CHECK (length(relay) = 32),
      process   text NOT NULL,
      seen      timestamptz NOT NULL DEFAULT now(),  -- within seconds
      displaced text[] NOT NULL DEFAULT '{}',        -- another took their place: ended, as far as is known
      evicted   text[] NOT NULL DEFAULT '{}'         -- who they had displaced went on: they give way
    );

    -- A process that was not there yet is taken for the relay's next start, and takes its place at once. Where the one before it
    -- goes on all the same, that one takes it back, and the later one waits until it has been silent for 20 minutes: twice the
    -- time between two questions of a relay that has nothing to send.
    CREATE FUNCTION seamesh.hold_relay(by_relay bytea, by_process text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DECLARE
      held record;
    BEGIN
      IF by_process = '' THEN
        RETURN true;
      END IF;
      INSERT INTO seamesh.relays (relay, process) VALUES (by_relay, by_process) ON CONFLICT DO NOTHING;
      SELECT r.process, clock_timestamp() - r.seen AS silence, r.displaced, r.evicted INTO STRICT held
        FROM seamesh.relays r WHERE r.relay = by_relay FOR UPDATE;
      IF held.process = by_process THEN
        UPDATE seamesh.relays r SET seen = clock_timestamp()
          WHERE r.relay = by_relay AND held.silence > interval '10 seconds';
      ELSIF by_process = ANY (held.displaced) THEN
        UPDATE seamesh.relays r SET process = by_process, seen = clock_timestamp(),
            displaced = array_remove(held.displaced, by_process),
            evicted = (array_prepend(held.process, held.evicted))[1:16]
          WHERE r.relay = by_relay;
      ELSIF by_process = ANY (held.evicted) AND held.silence < interval '20 minutes' THEN
        RAISE EXCEPTION '%', greatest(0, extract(epoch FROM held.silence)::integer) USING ERRCODE = 'SM004';
      ELSE
        UPDATE seamesh.relays r SET process = by_process, seen = clock_timestamp(),
            displaced = (array_prepend(held.process, held.displaced))[1:16],
            evicted = array_remove(held.evicted, by_process)
          WHERE r.relay = by_relay;
      END IF;
      RETURN true;
    END
    $$;
    """

  static let holdRelay12 = """
    ALTER TABLE seamesh.relays
      ADD COLUMN is_heard boolean NOT NULL DEFAULT true,  -- false: it took its place back, and was not heard since
      ADD COLUMN returned text[] NOT NULL DEFAULT '{}';   -- who took their place back before

    -- As before, but: a server that hung may carry out the last call of a process that was killed once the next start has its place.
    -- So one that takes its place back, and is not heard again, gives way after 30 seconds. It has to go on within them, or come
    -- back a second time.
    CREATE OR REPLACE FUNCTION seamesh.hold_relay(by_relay bytea, by_process text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DECLARE
      held record;
    BEGIN
      IF by_process = '' THEN
        RETURN true;
      END IF;
      INSERT INTO seamesh.relays (relay, process) VALUES (by_relay, by_process) ON CONFLICT DO NOTHING;
      SELECT r.process, clock_timestamp() - r.seen AS silence, r.displaced, r.evicted, r.is_heard, r.returned INTO STRICT held
        FROM seamesh.relays r WHERE r.relay = by_relay FOR UPDATE;
      IF held.process = by_process THEN
        UPDATE seamesh.relays r SET seen = clock_timestamp(), is_heard = true
          WHERE r.relay = by_relay AND held.silence > interval '10 seconds';
      ELSIF by_process = ANY (held.displaced) THEN
        UPDATE seamesh.relays r SET process = by_process, seen = clock_timestamp(),
            displaced = array_remove(held.displaced, by_process),
            evicted = (array_prepend(held.process, held.evicted))[1:16],
            is_heard = by_process = ANY (held.returned),
            returned = (array_prepend(by_process, array_remove(held.returned, by_process)))[1:16]
          WHERE r.relay = by_relay;
      ELSIF by_process = ANY (held.evicted)
          AND held.silence < (CASE WHEN held.is_heard THEN interval '20 minutes' ELSE interval '30 seconds' END) THEN
        RAISE EXCEPTION '%', greatest(0, extract(epoch FROM held.silence)::integer) USING ERRCODE = 'SM004';
      ELSE
        UPDATE seamesh.relays r SET process = by_process, seen = clock_timestamp(), is_heard = true,
            displaced = (array_prepend(held.process, held.displaced))[1:16],
            evicted = array_remove(held.evicted, by_process)
          WHERE r.relay = by_relay;
      END IF;
      RETURN true;
    END
    $$;
    """
}
