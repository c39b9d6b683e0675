#!/usr/bin/env python3
"""Plots of what engine_bench and paging_bench wrote.

    plot.py [FILE.csv...] [--out FOLDER]

Reads CSV files (default: results/*.csv beside this script), whatever mix of rows and
experiments they hold, and writes a PNG for each engine and experiment into FOLDER
(default: results).  Files named layout* are passed over: layout_bench's trials are parts of
a table, not tables to compare with.  Needs matplotlib, and Pillow, which comes with it.
"""
import argparse
import csv
import glob
import io
import os

import matplotlib
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OPS = ["insert", "upsert", "find_hit", "find_miss", "find_half", "delete", "add", "find_all",
       "count", "static_build", "static_build_m4", "grow", "shrink"]
NAMES = {"gpuhash_cuda": "CUDA engine", "gpuhash_cpu": "CPU engine"}
MIXES = {"G0": "50 % insert, 50 % delete",
         "G1": "20 % insert, 20 % delete, 30 % hits, 30 % misses",
         "G2": "10 % insert, 10 % delete, 40 % hits, 40 % misses"}


def read(files):
    """Lines by experiment; those of engine_bench's rows and of libraries are "rows"."""
    groups = {}
    for name in files:
        if os.path.basename(name).startswith("layout"):
            continue
        header = None
        with open(name, encoding="utf-8", newline="") as lines:
            for fields in csv.reader(lines):
                if not fields or fields[0].startswith("#"):
                    continue
                if fields[0] in ("lib", "experiment", "op"):
                    header = fields
                elif header and "ok" in header and len(fields) >= 7:
                    row = dict(zip(header, fields))
                    kind = "paging" if "times_limit" in row else "rows"
                    groups.setdefault(row.get("experiment", kind), []).append(row)
    return groups


def number(row, column):
    return float(row[column] or 0)


def values(rows, column):
    """The different values of a column, in the order of their appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def where(rows, **wanted):
    return [row for row in rows if all(row[k] == v for k, v in wanted.items())]


def unit(lib):
    """Divisor and label of rates: thousands of millions on a GPU."""
    if "cuda" in lib:
        return 1000.0, "billion operations/s"
    return 1.0, "million operations/s"


def finish(figure, out, name):
    figure.tight_layout()
    path = os.path.join(out, name + ".png")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    plt.close(figure)
    # few colours: a third of the size
    Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(
        path, optimize=True)
    print(path)


def mark_wrong(axis, rows):
    wrong = sum(row["ok"] != "yes" for row in rows)
    if wrong:
        axis.text(0.02, 0.95, f"{wrong} results were WRONG", color="red",
                  transform=axis.transAxes, va="top", weight="bold")


def plot_rows_at(axis, rows, others, divisor, ylabel):
    """Bars of one width and filled factor, beside the best of the others."""
    ops = [op for op in OPS if where(rows, op=op)]
    for at, op in enumerate(ops):
        mine = where(rows, op=op)[-1]
        rate = number(mine, "Mops") / divisor
        axis.bar(at - 0.2, rate, 0.4, color="tab:blue", label="gpuhash" if at == 0 else None)
        if mine.get("ratio"):
            axis.text(at - 0.2, rate, f"{float(mine['ratio']):.0%}", ha="center", va="bottom",
                      fontsize=7)
        best = max(where(others, op=op), key=lambda row: number(row, "Mops"), default=None)
        if best:
            height = number(best, "Mops") / divisor
            axis.bar(at + 0.2, height, 0.4, color="tab:gray")
            axis.text(at + 0.2, height, " " + best["lib"], rotation=90, ha="center", va="bottom",
                      fontsize=6)
    axis.bar(0, 0, color="tab:gray", label="best other")
    axis.set_xticks(range(len(ops)), ops, rotation=40, ha="right", fontsize=8)
    axis.set_ylabel(ylabel)
    axis.margins(y=0.45)
    axis.legend(fontsize=8, loc="upper right")
    mark_wrong(axis, rows)


def plot_rows(rows, out):
    for lib in [lib for lib in values(rows, "lib") if lib in NAMES]:
        mine = where(rows, lib=lib)
        divisor, ylabel = unit(lib)
        keybits, loads = values(mine, "keybits"), values(mine, "load")
        figure, axes = plt.subplots(len(loads), len(keybits), squeeze=False,
                                    figsize=(8 * len(keybits), 4.5 * len(loads)))
        for y, load in enumerate(loads):
            for x, bits in enumerate(keybits):
                at = where(mine, keybits=bits, load=load)
                # libraries were measured on the GPU; simplehash at the load it chooses
                others = [row for row in where(rows, keybits=bits)
                          if (lib == "gpuhash_cuda" and row["load"] == load and
                              not row["lib"].startswith(("gpuhash", "roofline", "simplehash"))) or
                          (lib == "gpuhash_cpu" and row["lib"] == "simplehash")]
                if lib == "gpuhash_cuda":
                    for op in ("grow", "shrink"):
                        others += [row for row in where(rows, keybits=bits, op=op)
                                   if row["lib"].startswith("dycuckoo")]
                if at:
                    plot_rows_at(axes[y][x], at, others, divisor, ylabel)
                    axes[y][x].set_title(f"{bits}-bit keys and values, filled to {load}, "
                                         f"n = {int(at[0]['n']):,}", fontsize=10)
        note = "\npercentages: of the device's limit (random 64-byte reads, compare-and-swaps)" \
            if "cuda" in lib else ""
        figure.suptitle(f"{NAMES[lib]}: operations on resident arrays{note}", fontsize=12)
        finish(figure, out, f"rows-{lib}")


def plot_static(rows, out):
    for lib in values(rows, "lib"):
        mine = where(rows, lib=lib)
        divisor, ylabel = unit(lib)
        figure, axes = plt.subplots(1, 2, figsize=(12, 4.5))
        for axis, ops, title in ((axes[0], ("insert", "upsert"), "insert (DUP: upsert)"),
                                 (axes[1], ("find",), "find")):
            for key in dict.fromkeys((row["dataset"], row["keybits"]) for row in mine):
                line = [row for row in where(mine, dataset=key[0], keybits=key[1])
                        if row["op"] in ops]
                axis.plot([number(row, "fill") for row in line],
                          [number(row, "Mops") / divisor for row in line], marker="o",
                          label=f"{key[0]}, {key[1]}-bit keys")
            axis.set_title(title)
            axis.set_xlabel("filled factor reached")
            axis.set_ylabel(ylabel)
            axis.margins(y=0.2)
            axis.set_ylim(bottom=0)
            axis.legend(fontsize=8)
            axis.grid(alpha=0.3)
        mark_wrong(axes[0], mine)
        grown = sum(int(row["upsizes"]) for row in mine if row["op"] != "find")
        lost = sum(int(row["lost"]) for row in mine)
        figure.suptitle(f"{NAMES.get(lib, lib)}: DyHash's static experiment, "
                        f"n = {int(mine[0]['n']):,}; tables that grew: {grown}, keys lost: {lost}")
        finish(figure, out, f"static-{lib}")


def plot_resize(rows, out):
    methods = {"subtable": "one subtable", "rehash": "full rehash (export, insert)",
               "reinsert": "reinsert from arrays"}
    for lib in values(rows, "lib"):
        mine = where(rows, lib=lib)
        figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
        for axis, direction in zip(axes, ("up", "down")):
            part = where(mine, direction=direction)
            for at, row in enumerate(part):
                axis.bar(at, number(row, "ms"), 0.6, color=f"C{at}")
                axis.text(at, number(row, "ms"), f"{number(row, 'ms'):,.2f} ms\n"
                          f"{number(row, 'Mops'):,.1f} M entries/s", ha="center", va="bottom",
                          fontsize=8)
            axis.set_yscale("log")
            axis.margins(y=0.3)
            axis.set_xticks(range(len(part)), [methods[row["method"]] for row in part], fontsize=8)
            axis.set_ylabel("time, ms (log)")
            if part:
                axis.set_title(f"{direction} from a filled factor of {number(part[0], 'fill'):.2f}, "
                               f"{int(part[0]['n']):,} keys", fontsize=10)
            mark_wrong(axis, part)
        figure.suptitle(f"{NAMES.get(lib, lib)}: resizing a subtable against rehashing")
        finish(figure, out, f"resize-{lib}")


def plot_dynamic_batches(axes, rows):
    """The default setting: filled factor and times along the batches."""
    steps = [row for row in where(rows, vary="none") if row["phase"] != "total"]
    if not steps:
        return
    x = range(1, len(steps) + 1)
    axes[0].plot(x, [number(row, "fill") for row in steps], label="filled factor")
    axes[0].axhline(number(steps[0], "alpha"), color="gray", ls="--", label="bounds")
    axes[0].axhline(number(steps[0], "beta"), color="gray", ls="--")
    axes[0].set_ylim(0, 1)
    axes[0].set_ylabel("filled factor")
    for op in ("insert", "find", "delete"):
        axes[1].plot(x, [number(row, op + "_ms") for row in steps], label=op)
    axes[1].set_ylabel("time of the batch's request, ms")
    axes[1].set_ylim(bottom=0)
    for axis in axes[:2]:
        axis.axvline(len(steps) / 2 + 0.5, color="black", lw=0.8, ls=":")
        axis.set_xlabel("batch (then the same backwards, inserts and deletes swapped)")
        axis.legend(fontsize=8)
    axes[0].set_title("r = {r}, alpha = {alpha}, beta = {beta}".format(**steps[0]), fontsize=10)


def plot_dynamic(rows, out):
    for lib, bits in dict.fromkeys((row["lib"], row["keybits"]) for row in rows):
        mine = where(rows, lib=lib, keybits=bits)
        figure, grid = plt.subplots(2, 3, figsize=(16, 8))
        plot_dynamic_batches(grid[0], mine)
        mark_wrong(grid[0][0], mine)
        grid[0][2].axis("off")
        for axis, vary in zip(grid[1], ("r", "alpha", "beta")):
            totals = where(mine, vary=vary, phase="total")
            bottom = [0.0] * len(totals)
            for op in ("insert", "find", "delete"):
                height = [number(row, op + "_ms") for row in totals]
                axis.bar([row[vary] for row in totals], height, 0.6, bottom=bottom, label=op)
                bottom = [a + b for a, b in zip(bottom, height)]
            for at, row in enumerate(totals):
                axis.text(at, bottom[at], f"fill {number(row, 'fill'):.2f}", ha="center",
                          va="bottom", fontsize=8)
            axis.set_xlabel({"r": "r: deletes for each insert", "alpha": "alpha: lower bound",
                             "beta": "beta: upper bound"}[vary])
            axis.set_ylabel("time of all batches, ms (resizing included)")
            axis.margins(y=0.35)
            axis.legend(fontsize=8, loc="upper right", ncols=3)
        figure.suptitle(f"{NAMES.get(lib, lib)}: DyHash's dynamic experiment, {bits}-bit keys, "
                        "200 batches")
        finish(figure, out, f"dynamic-{lib}-{bits}")


def plot_incremental(rows, out):
    styles = {"incremental": "-", "grow": "--", "rebuild": ":"}
    for lib, bits in dict.fromkeys((row["lib"], row["keybits"]) for row in rows):
        mine = where(rows, lib=lib, keybits=bits)
        totals = values(mine, "total")
        figure, axes = plt.subplots(1, len(totals), squeeze=False, figsize=(8 * len(totals), 5.5))
        for axis, total in zip(axes[0], totals):
            part = where(mine, total=total)
            for color, batch in enumerate(values(part, "batch")[:3]):
                for method, style in styles.items():
                    line = where(part, batch=batch, method=method)
                    axis.plot([number(row, "inserted") for row in line],
                              [number(row, "ms") for row in line], style, color=f"C{color}",
                              label=f"{method}, batches of {int(batch):,}")
            axis.set_yscale("log")
            axis.set_xlabel("elements inserted")
            axis.set_ylabel("time so far, ms (log)")
            axis.set_title(f"{int(total):,} elements")
            axis.legend(fontsize=7)
            axis.grid(alpha=0.3)
            mark_wrong(axis, part)
        figure.suptitle(f"{NAMES.get(lib, lib)}: slab hash's incremental batches against building "
                        f"anew after each, {bits}-bit keys")
        finish(figure, out, f"incremental-{lib}-{bits}")


def plot_mixes(rows, out):
    for lib, bits in dict.fromkeys((row["lib"], row["keybits"]) for row in rows):
        mine = where(rows, lib=lib, keybits=bits)
        divisor, ylabel = unit(lib)
        figure, axis = plt.subplots(figsize=(8, 5))
        for mix in values(mine, "mix"):
            line = where(mine, mix=mix)
            axis.plot([number(row, "fill") for row in line],
                      [number(row, "Mops") / divisor for row in line], marker="o",
                      label=MIXES.get(mix, mix))
        axis.set_xlabel("filled factor at the start")
        axis.set_ylabel(ylabel)
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
        mark_wrong(axis, mine)
        figure.suptitle(f"{NAMES.get(lib, lib)}: slab hash's mixes of operations in one request,\n"
                        f"{bits}-bit keys, batches of {int(mine[0]['batch']):,}", fontsize=11)
        finish(figure, out, f"mixes-{lib}-{bits}")


def plot_paging(rows, out):
    batches = values(rows, "batch")
    figure, axes = plt.subplots(1, len(batches), squeeze=False, figsize=(5 * len(batches), 4.5), sharey=True)
    for axis, batch in zip(axes[0], batches):
        for color, op in enumerate(values(rows, "op")):
            for style, distribution in zip(("-", "--"), ("uniform", "zipf")):
                line = sorted(where(rows, batch=batch, op=op, distribution=distribution),
                              key=lambda row: number(row, "times_limit"))
                axis.plot([number(row, "times_limit") for row in line],
                          [number(row, "Mops") for row in line], style, color=f"C{color}", marker="o",
                          label=f"{op}, {distribution}")
        axis.set_yscale("log")
        axis.set_xlabel("table, in times of the device's limit")
        axis.set_title(f"batches of {int(batch):,}")
        axis.grid(alpha=0.3)
        mark_wrong(axis, where(rows, batch=batch))
    axes[0][0].set_ylabel("M a second (log), arrays on the host")
    axes[0][-1].legend(fontsize=8)
    figure.suptitle("CUDA engine: tables that page")
    finish(figure, out, "paging-gpuhash_cuda")


PLOTS = {"paging": plot_paging, "rows": plot_rows, "static": plot_static, "resize": plot_resize,
         "dynamic": plot_dynamic, "incremental": plot_incremental, "mixes": plot_mixes}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="CSV files (default: results/*.csv)")
    parser.add_argument("--out", default=os.path.join(HERE, "results"), help="folder of the PNGs")
    arguments = parser.parse_args()
    files = arguments.files or sorted(glob.glob(os.path.join(HERE, "results", "*.csv")))
    os.makedirs(arguments.out, exist_ok=True)
    for experiment, rows in read(files).items():
        if experiment in PLOTS:
            PLOTS[experiment](rows, arguments.out)


if __name__ == "__main__":
    main()
