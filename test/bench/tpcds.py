#!/usr/bin/env python3
"""Makes the data, the tables and the queries of TPC-DS for tpch.sh (SUITE=tpcds), by DuckDB's extension tpcds.

    tpcds.py SCALE FOLDER       writes FOLDER/TABLE.csv, FOLDER/tables.sql and, last, FOLDER/queries.sql

Needs duckdb and duckdb-extension-tpcds of the same version, both from PyPI.  Keys are integers and identifiers of 16
characters are char(16), as the specification has them, where DuckDB has bigint and varchar for all; there are indexes
for primary keys alone.  The parameters of the queries are those of the extension, whatever the scale.
"""
import glob
import os
import re
import sys

import duckdb
import duckdb_extension_tpcds

KEYS = {
    "call_center": "cc_call_center_sk", "catalog_page": "cp_catalog_page_sk",
    "catalog_returns": "cr_item_sk, cr_order_number", "catalog_sales": "cs_item_sk, cs_order_number",
    "customer": "c_customer_sk", "customer_address": "ca_address_sk", "customer_demographics": "cd_demo_sk",
    "date_dim": "d_date_sk", "household_demographics": "hd_demo_sk", "income_band": "ib_income_band_sk",
    "inventory": "inv_date_sk, inv_item_sk, inv_warehouse_sk", "item": "i_item_sk", "promotion": "p_promo_sk",
    "reason": "r_reason_sk", "ship_mode": "sm_ship_mode_sk", "store": "s_store_sk",
    "store_returns": "sr_item_sk, sr_ticket_number", "store_sales": "ss_item_sk, ss_ticket_number",
    "time_dim": "t_time_sk", "warehouse": "w_warehouse_sk", "web_page": "wp_web_page_sk",
    "web_returns": "wr_item_sk, wr_order_number", "web_sales": "ws_item_sk, ws_order_number",
    "web_site": "web_site_sk",
}


def column_type(name, kind):
    """The type of a column in PostgreSQL, by DuckDB's."""
    if kind == "BIGINT":
        return "integer"
    if kind == "VARCHAR" and name.endswith("_id"):
        return "char(16)"
    return kind.lower()


def write_tables(connection, folder):
    """A file for each table, and the SQL that loads them all."""
    tables = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()]
    lines = ["\\set ON_ERROR_STOP on", "DROP TABLE IF EXISTS " + ", ".join(tables) + ";"]
    for table in tables:
        columns = connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
            [table]).fetchall()
        lines.append(f"CREATE TABLE {table} (" + ", ".join(f"{n} {column_type(n, t)}" for n, t in columns) + ");")
        path = os.path.join(folder, table + ".csv").replace("'", "''")
        connection.execute(f"COPY {table} TO '{path}' (FORMAT csv, HEADER)")
    lines.append("\\cd :data")
    lines += [f"\\copy {table} FROM '{table}.csv' (FORMAT csv, HEADER)" for table in tables]
    lines += [f"ALTER TABLE {table} ADD PRIMARY KEY ({KEYS[table]});" for table in tables]
    lines.append("VACUUM ANALYZE;")
    with open(os.path.join(folder, "tables.sql"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def write_queries(connection, folder):
    """As tpch_queries.sql has them: a line with the name, and one with the query."""
    with open(os.path.join(folder, "queries.sql"), "w", encoding="utf-8") as file:
        for number, query in connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall():
            file.write(f"-- q{number}\n" + re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", query)).strip().rstrip(";") + ";\n")


def main():
    """The work."""
    scale, folder = float(sys.argv[1]), sys.argv[2]
    pattern = os.path.join(os.path.dirname(duckdb_extension_tpcds.__file__), "extensions", "*", "tpcds.duckdb_extension")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{glob.glob(pattern)[0]}'")
    connection.execute(f"CALL dsdgen(sf = {scale})")
    os.makedirs(folder, exist_ok=True)
    write_tables(connection, folder)
    write_queries(connection, folder)


main()
