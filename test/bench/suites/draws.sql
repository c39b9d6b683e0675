-- draws.sql: what the tables of the suites are drawn with.  Values come from hashes of a row's number, so every run
-- has the same rows.
SET client_min_messages = warning;
SET synchronous_commit = off;

-- A number from 0 to below n for row i; draws with another salt are independent.
CREATE OR REPLACE FUNCTION draw(i bigint, salt bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT (hashint8extended(i, salt) & 9223372036854775807) % n $$;
-- The same, but low numbers are drawn far more often: a tenth of all draws is 0.
CREATE OR REPLACE FUNCTION skewed(i bigint, salt bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT least(n - 1, floor(exp(ln(n::float8 + 1) * draw(i, salt, 1000000) / 1e6) - 1)::bigint) $$;
-- One of the texts; the first ones far more often.
CREATE OR REPLACE FUNCTION pick(i bigint, salt bigint, texts text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT texts[1 + draw(i, salt, cardinality(texts))] $$;
CREATE OR REPLACE FUNCTION pick_skewed(i bigint, salt bigint, texts text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT texts[1 + skewed(i, salt, cardinality(texts))] $$;
-- Whether one draw in n hits.
CREATE OR REPLACE FUNCTION hit(i bigint, salt bigint, n bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT draw(i, salt, n) = 0 $$;
