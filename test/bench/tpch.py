#!/usr/bin/env python3
"""What tpch.sh needs Python for.

    tpch.py duckdb ...          runs the queries by DuckDB; prints a line for each run, as tpch.sh has them
    tpch.py plot TSV PNG        draws what tpch.sh wrote

The first needs duckdb, the second matplotlib, both from PyPI.
"""
import argparse
import os
import re
import resource
import sys
import threading
import time

COLORS = {"postgresql": "#7f7f7f", "gpuhash_cpu": "#1f77b4", "gpuhash_cuda": "#2ca02c", "duckdb": "#ff7f0e"}


def read_queries(name, only):
    """Query by name, in the file's order."""
    queries = {}
    query = None
    with open(name, encoding="utf-8") as lines:
        for line in lines:
            match = re.match(r"-- (q\d+)$", line.strip())
            if match:
                query = match.group(1)
            elif query and line.strip() and not line.startswith("--") and (not only or query in only):
                queries[query] = line
    return queries


def load(connection, schema, data):
    with open(schema, encoding="utf-8") as file:
        tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\);", file.read(), re.S)
    for table, columns in tables:
        path = os.path.join(data, table + ".csv").replace("'", "''")
        connection.execute(f"CREATE TABLE {table} ({columns})")
        connection.execute(f"COPY {table} FROM '{path}' (FORMAT csv, HEADER)")


def processor_ms():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return 1000 * (used.ru_utime + used.ru_stime)


def run_query(connection, query, limit_ms):
    """Rows, or None where it failed; milliseconds, of the clock and of processors."""
    timer = threading.Timer(limit_ms / 1000, connection.interrupt)
    timer.start()
    start, used = time.monotonic(), processor_ms()
    try:
        rows = connection.execute(query).fetchall()
    except Exception as error:  # pylint: disable=broad-except
        print(f"duckdb: {error}", file=sys.stderr)
        rows = None
    finally:
        timer.cancel()
    return rows, 1000 * (time.monotonic() - start), processor_ms() - used


def write_answer(name, rows):
    with open(name, "w", encoding="utf-8") as file:
        for row in rows or []:
            file.write("|".join("" if value is None else str(value) for value in row) + "\n")


def run_duckdb(args):
    import duckdb  # pylint: disable=import-outside-toplevel

    connection = duckdb.connect()
    connection.execute(f"SET threads = {args.threads}")
    load(connection, args.schema, args.data)
    queries = read_queries(args.queries, args.only.split())
    for rep in range(1, args.reps + 1):
        for name, query in queries.items():
            rows, ms, cpu = run_query(connection, query, args.limit)
            write_answer(os.path.join(args.answers, f"default.duckdb.{rep}.{name}"), rows)
            print(args.scale, name, "default", args.threads, "duckdb", rep, f"{ms:.3f}", round(cpu), 0,
                  "failed" if rows is None else "done", sep="\t", flush=True)


def read_table(name):
    with open(name, encoding="utf-8") as file:
        header = file.readline().rstrip("\n").split("\t")
        return [dict(zip(header, line.rstrip("\n").split("\t"))) for line in file]


def draw_kind(axes, rows, kind):
    """Bars of all systems with these settings; DuckDB's are the same with all."""
    rows = [row for row in rows if row["settings"] == kind or row["system"] == "duckdb"]
    queries = list(dict.fromkeys(row["query"] for row in rows))
    systems = [system for system in COLORS if any(row["system"] == system for row in rows)]
    width = 0.8 / max(len(systems), 1)
    for i, system in enumerate(systems):
        there = [row for row in rows if row["system"] == system and row["equal"] != "failed"]
        workers = there[0]["workers"] if there else "?"
        axes.bar([queries.index(row["query"]) + (i - (len(systems) - 1) / 2) * width for row in there],
                 [float(row["ms"]) for row in there], width, color=COLORS[system],
                 label=f"{system}, {workers} " + ("threads" if system == "duckdb" else "workers"))
    axes.set_yscale("log")
    axes.set_xticks(range(len(queries)), queries)
    axes.set_ylabel("ms")
    axes.set_title(f"{'TPC-DS' if len(queries) > 22 else 'TPC-H'}, scale {rows[0]['scale']}, {kind} settings; a failed query has no bar")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    axes.set_ylim(top=3 * axes.get_ylim()[1])
    axes.legend(ncols=max(len(systems), 1), loc="upper center")


def draw(args):
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # pylint: disable=import-outside-toplevel

    rows = read_table(args.table)
    kinds = list(dict.fromkeys(row["settings"] for row in rows if row["system"] != "duckdb")) or ["default"]
    figure, axes = plt.subplots(len(kinds), 1, figsize=(14, 5 * len(kinds)), squeeze=False)
    for i, kind in enumerate(kinds):
        draw_kind(axes[i][0], rows, kind)
    figure.tight_layout()
    figure.savefig(args.image, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    duckdb = commands.add_parser("duckdb")
    for name in ("schema", "queries", "data", "scale", "answers"):
        duckdb.add_argument("--" + name, required=True)
    for name in ("reps", "limit", "threads"):
        duckdb.add_argument("--" + name, type=int, required=True)
    duckdb.add_argument("--only", default="")
    duckdb.set_defaults(run=run_duckdb)
    plot = commands.add_parser("plot")
    plot.add_argument("table")
    plot.add_argument("image")
    plot.set_defaults(run=draw)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
