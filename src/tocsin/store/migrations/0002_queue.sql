-- The queue: append-only jobs and outcomes in time partitions, a narrow ready table, one lease row per claimed batch.

CREATE FUNCTION uuid_floor(at timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid $$;

-- One lane is one provider account on one channel: it is claimed, paused and paced as a whole.
CREATE TABLE lanes (
    id            int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel       text NOT NULL,
    provider      text NOT NULL,
    account       text NOT NULL DEFAULT 'default',
    calls_per_s   double precision CHECK (calls_per_s > 0),
    burst         int NOT NULL DEFAULT 1 CHECK (burst >= 1),
    tat           timestamptz,
    paused_until  timestamptz,
    pause_reason  text,
    pause_code    text,
    created_at    timestamptz NOT NULL,
    UNIQUE (channel, provider, account),
    CHECK ((paused_until IS NULL) = (pause_reason IS NULL))
) WITH (fillfactor = 50);

-- What a message says: stored once, referenced by every job that says it.
CREATE TABLE contents (
    id       uuid NOT NULL,
    project  int NOT NULL,
    body     json NOT NULL,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);

-- One job is one recipient on one channel. Never updated: what became of it stands in outcomes.
CREATE TABLE jobs (
    id             uuid NOT NULL,
    content_id     uuid NOT NULL,
    scheduled_at   timestamptz NOT NULL,
    expires_at     timestamptz,
    project        int NOT NULL,
    lane           int NOT NULL,
    priority       smallint NOT NULL CHECK (priority BETWEEN 0 AND 100),
    max_attempts   smallint NOT NULL,
    subscriber_id  text,
    recipient      text NOT NULL,
    vars           json,
    idempotency    bytea,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);

-- Due work only. Inserted and deleted, never updated. class: the strict priority class, 0 first; tag: the fair order in it.
CREATE TABLE ready (
    lane     int NOT NULL,
    class    smallint NOT NULL,
    tag      bigint NOT NULL,
    job_id   uuid NOT NULL,
    attempt  smallint NOT NULL,
    tries    smallint NOT NULL,
    PRIMARY KEY (lane, class, tag, job_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- Work that is not due: future sends and retries.
CREATE TABLE scheduled (
    class    smallint NOT NULL,
    due_at   timestamptz NOT NULL,
    job_id   uuid NOT NULL,
    lane     int NOT NULL,
    project  int NOT NULL,
    attempt  smallint NOT NULL,
    tries    smallint NOT NULL,
    PRIMARY KEY (class, due_at, job_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- One row per claimed batch. attempts: the number each job's attempt has; tries: how many it had used up before.
CREATE TABLE leases (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane        int NOT NULL,
    worker      uuid NOT NULL,
    claimed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    classes     smallint[] NOT NULL,
    tags        bigint[] NOT NULL,
    job_ids     uuid[] NOT NULL,
    attempts    smallint[] NOT NULL,
    tries       smallint[] NOT NULL,
    CHECK (cardinality(job_ids) > 0 AND cardinality(job_ids) = cardinality(attempts))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- The frozen provider calls of a lease, where the provider dedupes: written before the first byte leaves (law 4).
CREATE TABLE calls (
    lease     bigint NOT NULL,
    key       text NOT NULL,
    job_ids   uuid[] NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (lease, key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);

-- What became of each attempt. The primary key is the guard that one attempt ends once.
CREATE TABLE outcomes (
    job_id               uuid NOT NULL,
    at                   timestamptz NOT NULL,
    next_at              timestamptz,
    project              int NOT NULL,
    lane                 int NOT NULL,
    attempt              smallint NOT NULL,
    tries                smallint NOT NULL,
    state                smallint NOT NULL,
    code                 text,
    detail               text,
    provider_message_id  text,
    PRIMARY KEY (job_id, attempt)
) PARTITION BY RANGE (job_id);

-- A cancel that found its job outside scheduled: read before every send.
CREATE TABLE cancellations (
    job_id   uuid NOT NULL,
    project  int NOT NULL,
    at       timestamptz NOT NULL,
    code     text NOT NULL,
    PRIMARY KEY (job_id)
) PARTITION BY RANGE (job_id);

-- digest: of the key and of what it is about, lengths included, so that no two ever meet.
CREATE TABLE idempotency (
    project      int NOT NULL,
    digest       bytea NOT NULL,
    fingerprint  bytea NOT NULL,
    job_id       uuid NOT NULL,
    answer       bytea,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (project, digest)
);
CREATE INDEX idempotency_expiry ON idempotency (expires_at);

-- Fairness (start-time fair queueing): how far a lane has served, how far a project has booked.
CREATE TABLE lane_clock (
    lane    int NOT NULL,
    class   smallint NOT NULL,
    served  bigint NOT NULL,
    PRIMARY KEY (lane, class)
) WITH (fillfactor = 50);
CREATE TABLE project_clock (
    lane     int NOT NULL,
    class    smallint NOT NULL,
    project  int NOT NULL,
    booked   bigint NOT NULL,
    PRIMARY KEY (lane, class, project)
) WITH (fillfactor = 50);

-- A worker proves progress here: the row moves only when its loops do.
CREATE TABLE workers (
    id             uuid PRIMARY KEY,
    host           text NOT NULL,
    version        text NOT NULL,
    lanes          int[] NOT NULL,
    started_at     timestamptz NOT NULL,
    progressed_at  timestamptz NOT NULL
) WITH (fillfactor = 50);

-- slot spreads the writers, so that two workers never wait for one counter.
CREATE TABLE rollups (
    minute   timestamptz NOT NULL,
    project  int NOT NULL,
    lane     int NOT NULL,
    state    smallint NOT NULL,
    slot     smallint NOT NULL,
    count    bigint NOT NULL,
    PRIMARY KEY (minute, project, lane, state, slot)
) WITH (fillfactor = 50);
