-- films_tables.sql: a database of films in the shape of the one of the Join Order Benchmark: foreign keys that few
-- rows take most of, NULLs, texts.  At scale 1 it has 36 million roles.
CREATE TABLE film_kind AS SELECT i::int AS id, (ARRAY['film', 'series', 'tv film', 'video', 'tv mini series', 'game', 'episode'])[i] AS kind FROM generate_series(1, 7) i;
CREATE TABLE firm_kind AS SELECT i::int AS id, (ARRAY['distributors', 'production companies', 'special effects', 'miscellaneous'])[i] AS kind FROM generate_series(1, 4) i;
CREATE TABLE fact_kind AS SELECT i::int AS id, (ARRAY['genres', 'languages', 'countries', 'release dates', 'budget', 'rating', 'votes', 'top 250 rank', 'bottom 10 rank'])[i] AS kind
	FROM generate_series(1, 9) i UNION ALL SELECT i::int, 'fact kind ' || i FROM generate_series(10, 113) i;
CREATE TABLE role_kind AS SELECT i::int AS id, (ARRAY['actor', 'actress', 'producer', 'writer', 'cinematographer', 'composer', 'costume designer', 'director', 'editor'])[i] AS kind FROM generate_series(1, 9) i;
CREATE TABLE link_kind AS SELECT i::int AS id, (ARRAY['follows', 'followed by', 'remake of', 'remade as', 'references', 'referenced in'])[i] AS kind FROM generate_series(1, 6) i;

CREATE TABLE film AS
SELECT i::int AS id, pick(i, 1, '{The,A,My,Dark,Money,Last,Iron,Lost,Champion of}') || ' ' || pick(i, 2, '{Night,Man,Murder,Money,River,Freddy,Dragon,House,Love}') || CASE WHEN hit(i, 3, 3) THEN ' ' || draw(i, 4, 9) ELSE '' END AS title,
	(1 + skewed(i, 5, 7))::int AS kind_id, CASE WHEN hit(i, 6, 15) THEN NULL ELSE 2014 - skewed(i, 7, 120)::int END AS made, CASE WHEN hit(i, 8, 2) THEN draw(i, 9, 200)::int END AS episode
FROM generate_series(1, (2500000 * :scale)::bigint) i;
CREATE TABLE firm AS
SELECT i::int AS id, pick(i, 10, '{Universal,Lion,Warner,Film,Metro,Toho,Paramount,Pathe}') || ' ' || pick(i, 11, '{Pictures,Film,Studios,Television,Entertainment}') || ' ' || draw(i, 12, 1000) AS name,
	CASE WHEN hit(i, 13, 12) THEN NULL ELSE pick_skewed(i, 14, '{[us],[gb],[de],[fr],[jp],[it],[ca],[in],[se],[nl],[pl],[ru]}') END AS country
FROM generate_series(1, (235000 * :scale)::bigint + 40) i;
CREATE TABLE film_firm AS
SELECT i::int AS id, (1 + skewed(i, 15, (2500000 * :scale)::bigint))::int AS film_id, (1 + skewed(i, 16, (235000 * :scale)::bigint + 40))::int AS firm_id, (1 + skewed(i, 17, 4))::int AS firm_kind_id,
	CASE WHEN hit(i, 18, 2) THEN NULL ELSE '(' || (1950 + draw(i, 19, 65)) || ') ' || pick(i, 20, '{(USA),(worldwide),(VHS),(DVD),(theatrical),(TV)}') || CASE WHEN hit(i, 21, 5) THEN ' (co-production)' ELSE '' END END AS note
FROM generate_series(1, (2600000 * :scale)::bigint) i;
CREATE TABLE keyword AS
SELECT i::int AS id, CASE WHEN i <= 12 THEN (ARRAY['sequel', 'murder', 'character-name-in-title', 'based-on-novel', 'blood', 'violence', 'gore', 'revenge', 'superhero', 'magic', 'fight', 'second-part'])[i] ELSE 'keyword-' || i END AS keyword
FROM generate_series(1, (134000 * :scale)::bigint + 100) i;
CREATE TABLE film_keyword AS
SELECT i::int AS id, (1 + draw(i, 22, (2500000 * :scale)::bigint))::int AS film_id, (1 + skewed(i, 23, (134000 * :scale)::bigint + 100))::int AS keyword_id FROM generate_series(1, (4500000 * :scale)::bigint) i;
CREATE TABLE person AS
SELECT i::int AS id, pick(i, 24, '{Smith,Downey,Brown,Bergman,Anderson,Tanaka,Yilmaz,Zhang,Xavier,Kim}') || ', ' || pick(i, 25, '{Tim,Ann,Robert,Kate,Ingrid,Bob,Yuki,Angela}') || ' ' || draw(i, 26, 300) AS name,
	CASE WHEN hit(i, 27, 6) THEN NULL ELSE pick(i, 28, '{m,m,f}') END AS gender
FROM generate_series(1, (4100000 * :scale)::bigint) i;
CREATE TABLE person_alias AS
SELECT i::int AS id, (1 + skewed(i, 29, (4100000 * :scale)::bigint))::int AS person_id, pick(i, 30, '{Tim,Ann,Bob,Kate,X,Al}') || ' the ' || pick(i, 31, '{Great,Small,First,Younger}') || draw(i, 32, 1000) AS name FROM generate_series(1, (900000 * :scale)::bigint) i;
CREATE TABLE part_name AS
SELECT i::int AS id, pick(i, 33, '{Himself,Tony Stark,Queen,Doctor,Policeman,Waiter,Narrator,Hero}') || CASE WHEN hit(i, 34, 2) THEN ' ' || i ELSE '' END AS name FROM generate_series(1, (3100000 * :scale)::bigint) i;
CREATE TABLE role AS
SELECT i::int AS id, (1 + skewed(i, 35, (4100000 * :scale)::bigint))::int AS person_id, (1 + draw(i, 36, (2500000 * :scale)::bigint))::int AS film_id,
	CASE WHEN hit(i, 37, 2) THEN NULL ELSE (1 + skewed(i, 38, (3100000 * :scale)::bigint))::int END AS part_id,
	CASE WHEN hit(i, 39, 3) THEN pick(i, 40, '{(voice),(uncredited),(as himself),(producer),(executive producer),(writer),(voice: English version)}') END AS note,
	CASE WHEN hit(i, 41, 3) THEN draw(i, 42, 80)::int END AS place, (1 + skewed(i, 43, 9))::int AS role_kind_id
FROM generate_series(1, (36000000 * :scale)::bigint) i;
CREATE TABLE fact AS
SELECT i::int AS id, film_id, kind AS fact_kind_id,
	CASE kind WHEN 1 THEN pick_skewed(i, 44, '{Drama,Comedy,Horror,Action,Thriller,Western,Sci-Fi,War,Family}') WHEN 2 THEN pick_skewed(i, 45, '{English,German,French,Japanese,Swedish}')
		WHEN 3 THEN pick_skewed(i, 46, '{USA,UK,Germany,France,Japan,Sweden,Denmark,Norway}') WHEN 4 THEN pick(i, 47, '{USA,Germany,Japan,UK}') || ':' || draw(i, 48, 28) || ' May ' || (1980 + draw(i, 49, 35)) ELSE 'text ' || draw(i, 50, 100000) END AS info,
	CASE WHEN hit(i, 51, 4) THEN pick(i, 52, '{internet,festival,limited}') END AS note
FROM (SELECT i, (1 + draw(i, 53, (2500000 * :scale)::bigint))::int AS film_id, (1 + skewed(i, 54, 113))::int AS kind FROM generate_series(1, (14800000 * :scale)::bigint) i) f;
CREATE TABLE rating AS
SELECT i::int AS id, (1 + (i / 3 * 7) % (2500000 * :scale)::bigint)::int AS film_id, (6 + i % 3)::int AS fact_kind_id,
	CASE i % 3 WHEN 0 THEN (1 + draw(i, 55, 90) / 10.0)::numeric(3, 1)::text WHEN 1 THEN skewed(i, 56, 500000)::text ELSE (1 + draw(i, 57, 250))::text END AS info
FROM generate_series(1, (1380000 * :scale)::bigint) i;
CREATE TABLE link AS
SELECT i::int AS id, (1 + skewed(i, 58, (2500000 * :scale)::bigint))::int AS film_id, (1 + draw(i, 59, (2500000 * :scale)::bigint))::int AS other_id, (1 + draw(i, 60, 6))::int AS link_kind_id FROM generate_series(1, (30000 * :scale)::bigint + 200) i;

ALTER TABLE film_kind ADD PRIMARY KEY (id);
ALTER TABLE firm_kind ADD PRIMARY KEY (id);
ALTER TABLE fact_kind ADD PRIMARY KEY (id);
ALTER TABLE role_kind ADD PRIMARY KEY (id);
ALTER TABLE link_kind ADD PRIMARY KEY (id);
ALTER TABLE film ADD PRIMARY KEY (id);
ALTER TABLE firm ADD PRIMARY KEY (id);
ALTER TABLE film_firm ADD PRIMARY KEY (id);
ALTER TABLE keyword ADD PRIMARY KEY (id);
ALTER TABLE film_keyword ADD PRIMARY KEY (id);
ALTER TABLE person ADD PRIMARY KEY (id);
ALTER TABLE part_name ADD PRIMARY KEY (id);
ALTER TABLE role ADD PRIMARY KEY (id);
ALTER TABLE fact ADD PRIMARY KEY (id);
CREATE INDEX ON film_firm (film_id);
CREATE INDEX ON film_firm (firm_id);
CREATE INDEX ON film_keyword (film_id);
CREATE INDEX ON film_keyword (keyword_id);
CREATE INDEX ON person_alias (person_id);
CREATE INDEX ON role (film_id);
CREATE INDEX ON role (person_id);
CREATE INDEX ON role (part_id);
CREATE INDEX ON fact (film_id);
CREATE INDEX ON fact (fact_kind_id);
CREATE INDEX ON rating (film_id);
CREATE INDEX ON link (film_id);
-- what is committed is to be written: before that VACUUM marks no page as all-visible
SET synchronous_commit = on;
CREATE INDEX ON link (other_id);
VACUUM (ANALYZE) film_kind, firm_kind, fact_kind, role_kind, link_kind, film, firm, film_firm, keyword, film_keyword, person, person_alias, part_name, role, fact, rating, link;
