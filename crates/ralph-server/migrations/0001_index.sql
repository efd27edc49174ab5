-- Only TEXT, BIGINT and DOUBLE PRECISION, so that the same queries work on other databases.

-- One row, `index`: the instance of the index, which changes when the positions of its feed lose their meaning.
CREATE TABLE instances (
    name TEXT NOT NULL PRIMARY KEY,
    id TEXT NOT NULL
);

CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    -- Sorts the runs by their creation.
    sort_key TEXT NOT NULL,
    status TEXT NOT NULL,
    repo TEXT NOT NULL,
    -- Id, task, title and repository in lower case, for the search.
    search_text TEXT NOT NULL,
    -- The JSON of `ralph show`.
    details TEXT NOT NULL,
    -- 1 if the status requires a process, and 1 if a process had the run.
    needs_process BIGINT NOT NULL,
    held BIGINT NOT NULL,
    -- 1 if the run has ended.
    ended BIGINT NOT NULL,
    -- The journal file as it was read.
    device BIGINT NOT NULL,
    inode BIGINT NOT NULL,
    length BIGINT NOT NULL,
    modified_ns BIGINT NOT NULL,
    -- The number and the digest of its last record; 0 if it cannot be read.
    seq BIGINT NOT NULL,
    digest TEXT NOT NULL
);

CREATE INDEX runs_by_creation ON runs (sort_key);

-- The offset of some records in their journal, so that a reader can start in its middle.
CREATE TABLE marks (
    run TEXT NOT NULL,
    seq BIGINT NOT NULL,
    byte_offset BIGINT NOT NULL,
    PRIMARY KEY (run, seq)
);

-- The measurements of finished iterations.
CREATE TABLE iterations (
    run TEXT NOT NULL,
    iteration BIGINT NOT NULL,
    finished_ms BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    cost_nano_usd BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    loop_score DOUBLE PRECISION,
    tests_passed BIGINT,
    tests_failed BIGINT,
    tests_skipped BIGINT,
    boxes_ticked BIGINT NOT NULL,
    boxes_total BIGINT NOT NULL,
    PRIMARY KEY (run, iteration)
);

-- New records of all runs in the order in which they were noticed.
CREATE TABLE feed (
    position BIGINT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL
);
