-- Who sends: projects, their people, their words, and what people agreed to.

CREATE TABLE projects (
    number              int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                  text NOT NULL,
    name                text NOT NULL,
    channels            text[] NOT NULL,
    key_hash            bytea,
    previous_key_hash   bytea,
    previous_key_until  timestamptz,
    rate_limit_per_min  int,
    weight              int NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 1000),
    settings            json NOT NULL DEFAULT '{}',
    from_email          text,
    from_name           text,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    deleted_at          timestamptz,
    CHECK ((previous_key_hash IS NULL) = (previous_key_until IS NULL))
);
-- A deleted project keeps its number for ever, so a new one of the same name can never see its rows.
CREATE UNIQUE INDEX projects_id ON projects (id) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX projects_key ON projects (key_hash) WHERE key_hash IS NOT NULL;
CREATE UNIQUE INDEX projects_previous_key ON projects (previous_key_hash) WHERE previous_key_hash IS NOT NULL;

CREATE TABLE secrets (
    name        text PRIMARY KEY,
    value       bytea NOT NULL,
    created_at  timestamptz NOT NULL
);

CREATE TABLE subscribers (
    project     int NOT NULL,
    id          text NOT NULL,
    email       text,
    phone       text,
    first_name  text,
    last_name   text,
    locale      text,
    timezone    text,
    data        json NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    PRIMARY KEY (project, id)
);

-- Who asked to be forgotten, and when: what was enqueued for them before is not sent, and no token of theirs opens anything.
CREATE TABLE erasures (
    project        int NOT NULL,
    subscriber_id  text NOT NULL,
    at             timestamptz NOT NULL,
    PRIMARY KEY (project, subscriber_id)
);

CREATE TABLE templates (
    project     int NOT NULL,
    id          text NOT NULL,
    channel     text NOT NULL,
    subject     text,
    body        text NOT NULL,
    body_html   text,
    topic       text,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    PRIMARY KEY (project, id, channel)
);

-- channel '*' is every channel; topic and workflow are '' when the choice is not about one.
CREATE TABLE preferences (
    project        int NOT NULL,
    subscriber_id  text NOT NULL,
    channel        text NOT NULL,
    topic          text NOT NULL DEFAULT '',
    workflow_id    text NOT NULL DEFAULT '',
    enabled        boolean NOT NULL,
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (project, subscriber_id, channel, topic, workflow_id)
);

CREATE TABLE suppressions (
    id           uuid PRIMARY KEY,
    project      int NOT NULL,
    channel      text NOT NULL,
    address      text NOT NULL,
    scope        text NOT NULL CHECK (scope IN ('all', 'marketing')),
    reason       text NOT NULL,
    detail       text,
    job_id       uuid,
    created_at   timestamptz NOT NULL,
    released_at  timestamptz,
    released_by  text
);
CREATE UNIQUE INDEX suppressions_active ON suppressions (project, channel, address) WHERE released_at IS NULL;

CREATE TABLE webhooks (
    id          uuid PRIMARY KEY,
    project     int NOT NULL,
    url         text NOT NULL,
    events      text[] NOT NULL,
    secret      bytea NOT NULL,
    enabled     boolean NOT NULL,
    created_at  timestamptz NOT NULL
);
CREATE INDEX webhooks_project ON webhooks (project) WHERE enabled;
