-- films_queries.sql: questions in the shapes of the Join Order Benchmark, about films_tables.sql: least values of some
-- texts behind 4 to 12 joins, with conditions that keep few or most rows of the tables.

-- firms_of_top_films
SELECT min(ff.note), min(f.title), min(f.made) FROM firm_kind fk, fact_kind k, film_firm ff, rating r, film f
WHERE fk.kind = 'production companies' AND k.kind = 'top 250 rank' AND ff.note NOT LIKE '%(TV)%' AND (ff.note LIKE '%(co-production)%' OR ff.note LIKE '%(DVD)%')
	AND fk.id = ff.firm_kind_id AND f.id = ff.film_id AND f.id = r.film_id AND ff.film_id = r.film_id AND k.id = r.fact_kind_id;
-- keywords_by_country
SELECT min(f.title) FROM firm c, keyword k, film_firm ff, film_keyword fk, film f
WHERE c.country = '[de]' AND k.keyword = 'character-name-in-title' AND c.id = ff.firm_id AND ff.film_id = f.id AND f.id = fk.film_id AND fk.keyword_id = k.id AND ff.film_id = fk.film_id;
-- sequels_by_language
SELECT min(f.title) FROM keyword k, fact i, film_keyword fk, film f
WHERE k.keyword LIKE '%sequel%' AND i.info IN ('Sweden', 'Norway', 'Germany', 'Denmark', 'Swedish', 'German') AND f.made > 2005 AND f.id = i.film_id AND f.id = fk.film_id AND fk.film_id = i.film_id AND k.id = fk.keyword_id;
-- ratings_of_sequels
SELECT min(r.info), min(f.title) FROM fact_kind i, keyword k, rating r, film_keyword fk, film f
WHERE i.kind = 'rating' AND k.keyword LIKE '%sequel%' AND r.info > '5.0' AND f.made > 2005 AND f.id = r.film_id AND f.id = fk.film_id AND fk.film_id = r.film_id AND k.id = fk.keyword_id AND i.id = r.fact_kind_id;
-- distributors
SELECT min(f.title) FROM firm_kind ck, fact_kind i, film_firm ff, fact m, film f
WHERE ck.kind = 'distributors' AND ff.note LIKE '%(theatrical)%' AND ff.note LIKE '%(195%' AND m.info IN ('USA', 'UK', 'Japan') AND f.made > 2000 AND f.id = m.film_id AND f.id = ff.film_id AND ff.film_id = m.film_id
	AND ck.id = ff.firm_kind_id AND i.id = m.fact_kind_id;
-- heroes
SELECT min(k.keyword), min(p.name), min(f.title) FROM role r, keyword k, film_keyword fk, person p, film f
WHERE k.keyword IN ('superhero', 'sequel', 'second-part', 'violence', 'fight') AND p.name LIKE '%Downey%Robert%' AND f.made > 2010 AND k.id = fk.keyword_id AND f.id = fk.film_id AND f.id = r.film_id AND r.film_id = fk.film_id AND p.id = r.person_id;
-- biographies
SELECT min(p.name), min(f.title) FROM person_alias a, role r, film f, person p, link l, link_kind lk
WHERE a.name LIKE '%a%' AND lk.kind = 'references' AND p.name BETWEEN 'A' AND 'F' AND (p.gender = 'm' OR (p.gender = 'f' AND p.name LIKE 'B%')) AND f.made BETWEEN 1980 AND 2005
	AND p.id = a.person_id AND p.id = r.person_id AND r.film_id = f.id AND l.other_id = f.id AND lk.id = l.link_kind_id AND a.person_id = r.person_id AND r.film_id = l.other_id;
-- voices
SELECT min(a.name), min(f.title) FROM person_alias a, role r, firm c, film_firm ff, person p, role_kind rk, film f
WHERE r.note = '(voice: English version)' AND c.country = '[jp]' AND ff.note LIKE '%(VHS)%' AND ff.note NOT LIKE '%(USA)%' AND p.name LIKE '%Ann%' AND rk.kind = 'actress' AND p.gender = 'f'
	AND a.person_id = p.id AND p.id = r.person_id AND r.film_id = f.id AND f.id = ff.film_id AND r.film_id = ff.film_id AND ff.firm_id = c.id AND r.role_kind_id = rk.id AND a.person_id = r.person_id;
-- voices_of_parts
SELECT min(a.name), min(n.name), min(f.title) FROM person_alias a, part_name n, role r, firm c, film_firm ff, person p, role_kind rk, film f
WHERE r.note IN ('(voice)', '(voice: English version)') AND c.country = '[us]' AND p.gender = 'f' AND p.name LIKE '%An%' AND rk.kind = 'actress' AND f.made BETWEEN 2005 AND 2015
	AND r.film_id = f.id AND f.id = ff.film_id AND r.film_id = ff.film_id AND ff.firm_id = c.id AND r.role_kind_id = rk.id AND p.id = r.person_id AND n.id = r.part_id AND a.person_id = p.id AND a.person_id = r.person_id;
-- uncredited
SELECT min(n.name), min(f.title) FROM part_name n, role r, firm c, firm_kind ck, film_firm ff, role_kind rk, film f
WHERE r.note LIKE '%(uncredited)%' AND c.country = '[ru]' AND rk.kind = 'actor' AND f.made > 2000 AND f.id = ff.film_id AND f.id = r.film_id AND r.film_id = ff.film_id AND n.id = r.part_id AND rk.id = r.role_kind_id AND c.id = ff.firm_id AND ck.id = ff.firm_kind_id;
-- links_of_firms
SELECT min(c.name), min(lk.kind), min(f.title) FROM firm c, firm_kind ck, keyword k, link_kind lk, film_firm ff, film_keyword fk, link l, film f
WHERE c.country <> '[pl]' AND (c.name LIKE '%Film%' OR c.name LIKE '%Warner%') AND ck.kind = 'production companies' AND k.keyword = 'sequel' AND lk.kind LIKE '%follow%' AND ff.note IS NULL AND f.made BETWEEN 1950 AND 2014
	AND lk.id = l.link_kind_id AND l.film_id = f.id AND f.id = fk.film_id AND fk.keyword_id = k.id AND f.id = ff.film_id AND ff.firm_kind_id = ck.id AND ff.firm_id = c.id AND l.film_id = fk.film_id AND l.film_id = ff.film_id AND fk.film_id = ff.film_id;
-- good_dramas
SELECT min(c.name), min(r.info), min(f.title) FROM firm c, firm_kind ck, fact_kind k1, fact_kind k2, film_firm ff, fact i, rating r, film f
WHERE c.country = '[us]' AND ck.kind = 'production companies' AND k1.kind = 'genres' AND k2.kind = 'rating' AND i.info IN ('Drama', 'Horror', 'Western', 'Family') AND r.info > '8.0' AND f.made BETWEEN 2000 AND 2010
	AND f.id = i.film_id AND f.id = r.film_id AND i.fact_kind_id = k1.id AND r.fact_kind_id = k2.id AND f.id = ff.film_id AND ck.id = ff.firm_kind_id AND c.id = ff.firm_id AND ff.film_id = i.film_id AND ff.film_id = r.film_id AND i.film_id = r.film_id;
-- release_dates
SELECT min(i.info), min(r.info), min(f.title) FROM firm c, firm_kind ck, fact_kind k1, fact_kind k2, film_kind fk, fact i, film_firm ff, rating r, film f
WHERE c.country = '[de]' AND ck.kind = 'production companies' AND k1.kind = 'rating' AND k2.kind = 'release dates' AND fk.kind = 'film'
	AND i.film_id = f.id AND k2.id = i.fact_kind_id AND fk.id = f.kind_id AND ff.film_id = f.id AND c.id = ff.firm_id AND ck.id = ff.firm_kind_id AND r.film_id = f.id AND k1.id = r.fact_kind_id AND i.film_id = r.film_id AND i.film_id = ff.film_id AND r.film_id = ff.film_id;
-- dark_films
SELECT min(r.info), min(f.title) FROM fact_kind k1, fact_kind k2, keyword k, film_kind fk, fact i, rating r, film_keyword w, film f
WHERE k1.kind = 'countries' AND k2.kind = 'rating' AND k.keyword IN ('murder', 'blood', 'violence', 'gore') AND fk.kind = 'film' AND i.info IN ('Sweden', 'Norway', 'Germany', 'Denmark', 'USA') AND r.info < '8.5' AND f.made > 2010
	AND fk.id = f.kind_id AND f.id = i.film_id AND f.id = w.film_id AND f.id = r.film_id AND w.film_id = i.film_id AND w.film_id = r.film_id AND i.film_id = r.film_id AND k.id = w.keyword_id AND k1.id = i.fact_kind_id AND k2.id = r.fact_kind_id;
-- internet_releases
SELECT min(i.info), min(f.title) FROM film f, firm c, firm_kind ck, fact_kind k1, film_firm ff, fact i, film_keyword w, keyword k
WHERE c.country = '[us]' AND k1.kind = 'release dates' AND ff.note LIKE '%(200%)%' AND ff.note LIKE '%(worldwide)%' AND i.note LIKE '%internet%' AND i.info LIKE 'USA:% 200%' AND f.made > 2000
	AND f.id = i.film_id AND f.id = w.film_id AND f.id = ff.film_id AND w.film_id = i.film_id AND w.film_id = ff.film_id AND i.film_id = ff.film_id AND k.id = w.keyword_id AND k1.id = i.fact_kind_id AND c.id = ff.firm_id AND ck.id = ff.firm_kind_id;
-- aliases_of_actors
SELECT min(a.name), min(f.title) FROM person_alias a, role r, firm c, keyword k, film_firm ff, film_keyword w, person p, film f
WHERE c.country = '[us]' AND k.keyword = 'character-name-in-title' AND f.episode >= 50 AND f.episode < 100
	AND a.person_id = p.id AND p.id = r.person_id AND r.film_id = f.id AND f.id = w.film_id AND w.keyword_id = k.id AND f.id = ff.film_id AND ff.firm_id = c.id AND a.person_id = r.person_id AND r.film_id = ff.film_id AND r.film_id = w.film_id AND ff.film_id = w.film_id;
-- names_with_letter
SELECT min(p.name), count(*) FROM role r, firm c, keyword k, film_firm ff, film_keyword w, person p, film f
WHERE c.country = '[us]' AND k.keyword = 'character-name-in-title' AND p.name LIKE 'B%' AND p.id = r.person_id AND r.film_id = f.id AND f.id = w.film_id AND w.keyword_id = k.id AND f.id = ff.film_id AND ff.firm_id = c.id AND r.film_id = ff.film_id;
-- producers
SELECT min(i.info), min(r.info), min(f.title) FROM role o, fact_kind k1, fact_kind k2, fact i, rating r, person p, film f
WHERE o.note IN ('(producer)', '(executive producer)') AND k1.kind = 'budget' AND k2.kind = 'votes' AND p.gender = 'm' AND p.name LIKE '%Tim%'
	AND f.id = i.film_id AND f.id = r.film_id AND f.id = o.film_id AND o.film_id = i.film_id AND o.film_id = r.film_id AND i.film_id = r.film_id AND p.id = o.person_id AND k1.id = i.fact_kind_id AND k2.id = r.fact_kind_id;
-- voices_released
SELECT min(p.name), min(f.title) FROM person_alias a, part_name n, role o, firm c, fact_kind k, film_firm ff, fact i, person p, role_kind rk, film f
WHERE o.note IN ('(voice)', '(uncredited)') AND c.country = '[us]' AND k.kind = 'release dates' AND ff.note IS NOT NULL AND (ff.note LIKE '%(USA)%' OR ff.note LIKE '%(worldwide)%') AND i.info IS NOT NULL AND (i.info LIKE 'Japan:%200%' OR i.info LIKE 'USA:%200%')
	AND p.gender = 'f' AND p.name LIKE '%An%' AND rk.kind = 'actress' AND f.made BETWEEN 2005 AND 2009
	AND f.id = i.film_id AND f.id = ff.film_id AND f.id = o.film_id AND ff.film_id = o.film_id AND ff.film_id = i.film_id AND i.film_id = o.film_id AND c.id = ff.firm_id AND k.id = i.fact_kind_id AND p.id = o.person_id AND rk.id = o.role_kind_id AND p.id = a.person_id AND o.person_id = a.person_id AND n.id = o.part_id;
-- gore_by_writers
SELECT min(i.info), min(r.info), min(p.name), min(f.title) FROM role o, fact_kind k1, fact_kind k2, keyword k, fact i, rating r, film_keyword w, person p, film f
WHERE o.note IN ('(writer)', '(producer)', '(executive producer)') AND k1.kind = 'genres' AND k2.kind = 'votes' AND k.keyword IN ('murder', 'violence', 'blood', 'gore', 'revenge') AND i.info = 'Horror' AND p.gender = 'm'
	AND f.id = i.film_id AND f.id = r.film_id AND f.id = o.film_id AND f.id = w.film_id AND o.film_id = i.film_id AND o.film_id = r.film_id AND o.film_id = w.film_id AND i.film_id = r.film_id AND i.film_id = w.film_id AND r.film_id = w.film_id
	AND p.id = o.person_id AND k1.id = i.fact_kind_id AND k2.id = r.fact_kind_id AND k.id = w.keyword_id;
-- links_of_series
SELECT min(c1.name), min(c2.name), min(r1.info), min(r2.info), min(f1.title), min(f2.title)
FROM firm c1, firm c2, fact_kind k1, fact_kind k2, film_kind t1, film_kind t2, link_kind lk, film_firm ff1, film_firm ff2, rating r1, rating r2, link l, film f1, film f2
WHERE c1.country <> '[us]' AND k1.kind = 'rating' AND k2.kind = 'rating' AND t1.kind IN ('film', 'series', 'episode') AND t2.kind IN ('film', 'series', 'episode') AND lk.kind IN ('follows', 'followed by', 'references') AND r2.info < '7.5'
	AND f2.made BETWEEN 1990 AND 2014 AND lk.id = l.link_kind_id AND f1.id = l.film_id AND f2.id = l.other_id AND k1.id = r1.fact_kind_id AND f1.id = r1.film_id AND t1.id = f1.kind_id AND c1.id = ff1.firm_id AND f1.id = ff1.film_id
	AND k2.id = r2.fact_kind_id AND f2.id = r2.film_id AND t2.id = f2.kind_id AND c2.id = ff2.firm_id AND f2.id = ff2.film_id;
