-- The inbox: messages, one versioned counter per person, and the log of changes that live readers follow.

CREATE TABLE inboxes (
    project        int NOT NULL,
    subscriber_id  text NOT NULL,
    version        bigint NOT NULL,
    unread         int NOT NULL CHECK (unread >= 0),
    PRIMARY KEY (project, subscriber_id)
) WITH (fillfactor = 50);

-- id is the job's id: the primary key is what makes in-app exactly once.
CREATE TABLE inbox_messages (
    id             uuid NOT NULL,
    project        int NOT NULL,
    subscriber_id  text NOT NULL,
    subject        text,
    body           text NOT NULL,
    icon           text NOT NULL,
    url            text,
    data           json NOT NULL,
    is_todo        boolean NOT NULL DEFAULT false,
    read_at        timestamptz,
    archived_at    timestamptz,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (project, subscriber_id, id)
);
CREATE INDEX inbox_messages_newest ON inbox_messages (project, subscriber_id, created_at, id) WHERE archived_at IS NULL;

-- version is gap-free per inbox and committed in order, because the inboxes row is locked by whoever takes the next one.
CREATE TABLE inbox_changes (
    project        int NOT NULL,
    subscriber_id  text NOT NULL,
    version        bigint NOT NULL,
    at             timestamptz NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('new', 'read', 'archived', 'todo', 'read_all', 'unread', 'unarchived')),
    message_id     uuid,
    unread         int NOT NULL,
    PRIMARY KEY (project, subscriber_id, version, at)
) PARTITION BY RANGE (at);

CREATE TABLE stream_tickets (
    ticket_hash    bytea PRIMARY KEY,
    project        int NOT NULL,
    subscriber_id  text NOT NULL,
    expires_at     timestamptz NOT NULL,
    stream_until   timestamptz NOT NULL
);

-- Makes the daily partitions of every partitioned table, for the days [first, last]. Safe to repeat, safe in several processes.
CREATE FUNCTION ensure_partitions(first date, last date) RETURNS int
    LANGUAGE plpgsql
    AS $$
DECLARE
    day date;
    part text;
    name text;
    made int := 0;
    low timestamptz;
    high timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(7364201, 1);
    FOR day IN SELECT d::date FROM generate_series(first, last, interval '1 day') d LOOP
        low := day::timestamp AT TIME ZONE 'UTC';
        high := (day + 1)::timestamp AT TIME ZONE 'UTC';
        FOREACH part IN ARRAY ARRAY['contents', 'jobs', 'outcomes', 'cancellations', 'inbox_changes'] LOOP
            name := part || '_' || to_char(day, 'YYYYMMDD');
            CONTINUE WHEN to_regclass('tocsin.' || name) IS NOT NULL;
            IF part = 'inbox_changes' THEN
                EXECUTE format('CREATE TABLE tocsin.%I PARTITION OF tocsin.%I FOR VALUES FROM (%L) TO (%L)', name, part, low, high);
            ELSE
                EXECUTE format('CREATE TABLE tocsin.%I PARTITION OF tocsin.%I FOR VALUES FROM (%L) TO (%L)',
                    name, part, tocsin.uuid_floor(low), tocsin.uuid_floor(high));
            END IF;
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;

-- For people with psql: one row per job, its latest fact beside it.
CREATE VIEW job_status AS
SELECT j.id, p.id AS project, l.channel, l.provider, j.subscriber_id, j.recipient, j.priority, j.scheduled_at,
       CASE
           WHEN o.state = 1 THEN 'sent'
           WHEN o.state = 3 THEN 'failed'
           WHEN o.state = 4 THEN 'cancelled'
           WHEN o.state = 5 THEN 'skipped'
           WHEN o.state = 7 THEN 'expired'
           WHEN o.state = 6 AND o.next_at IS NULL THEN 'unknown'
           WHEN EXISTS (SELECT FROM leases le WHERE j.id = ANY (le.job_ids)) THEN 'processing'
           WHEN c.job_id IS NOT NULL THEN 'cancelled'
           WHEN o.job_id IS NOT NULL THEN 'retry'
           ELSE 'pending'
       END AS status,
       coalesce(o.attempt, 0) AS attempt, o.at, o.next_at, o.code, o.detail, o.provider_message_id
  FROM jobs j
  JOIN projects p ON p.number = j.project
  JOIN lanes l ON l.id = j.lane
  LEFT JOIN cancellations c ON c.job_id = j.id
  LEFT JOIN LATERAL (SELECT * FROM outcomes o WHERE o.job_id = j.id ORDER BY o.attempt DESC LIMIT 1) o ON true;
