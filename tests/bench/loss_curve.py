"""Loss curves of muster-train's logs in one picture, and how far they lie apart.

usage: loss_curve.py OUTPUT.svg NAME=LOG NAME=LOG   (the gap printed is the first's loss less the second's)"""

import re
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP = 860, 520, 60, 20, 24, 40, 130  # GAP: height of the lower panel
COLOURS = ("#0b66c3", "#d1570b")
LINE = re.compile(r"iteration\s+(\d+)/.*lm loss:\s*([0-9.E+-]+)")


def losses(log):
    found = [LINE.search(line) for line in Path(log).read_text().splitlines()]
    return {int(m[1]): float(m[2]) for m in found if m}


def scale(low, high, start, end):
    return lambda x: round(start + (x - low) / (high - low) * (end - start), 1)


def panel(series, x, y, ticks, colours):
    parts = [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(t)}" y2="{y(t)}" stroke="#ddd"/>'
             f'<text x="{LEFT - 8}" y="{y(t) + 4}" text-anchor="end">{t:g}</text>' for t in ticks]
    for values, colour in zip(series, colours):
        points = " ".join(f"{x(i)},{y(v)}" for i, v in sorted(values.items()))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.3" points="{points}"/>')
    return parts


def main(output, *named):
    names, curves = zip(*((n, losses(log)) for n, log in (word.split("=", 1) for word in named)))
    steps = sorted(set(curves[0]) & set(curves[1]))
    gap = {i: curves[0][i] - curves[1][i] for i in steps}
    x = scale(steps[0], steps[-1], LEFT, WIDTH - RIGHT)
    everything = [v for curve in curves for v in curve.values()]
    low, high = int(min(everything)), int(max(everything)) + 1
    middle = HEIGHT - BOTTOM - GAP
    widest = max(abs(v) for v in gap.values())
    y, y_gap = scale(low, high, middle - 24, TOP), scale(-widest, widest, HEIGHT - BOTTOM, middle)
    parts = panel(curves, x, y, range(low, high + 1), COLOURS)
    parts += panel([gap], x, y_gap, [round(-widest, 2), 0, round(widest, 2)], ["#555"])
    parts += [f'<text x="{x(t)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{t}</text>' for t in range(0, steps[-1] + 1, 50) if t >= steps[0]]
    for i, (name, colour) in enumerate(zip(names, COLOURS)):
        parts.append(f'<text x="{WIDTH - 180}" y="{TOP + 20 + 18 * i}" fill="{colour}">{name}</text>')
    parts.append(f'<text x="{LEFT + 6}" y="{middle + 12}">{names[0]} less {names[1]}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">optimizer steps; loss in nats</text>')
    Path(output).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
                            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>' + "\n".join(parts) + "</svg>\n")
    tail = steps[-20:]
    worst = max(steps, key=lambda i: abs(gap[i]))
    for name, curve in zip(names, curves):
        print(f"{name}: {curve[steps[0]]:.4f} at {steps[0]}, {curve[steps[-1]]:.4f} at {steps[-1]}, mean of the last 20: {sum(curve[i] for i in tail) / len(tail):.4f}")
    print(f"gap: mean {sum(gap.values()) / len(gap):+.4f}, of the last 20 {sum(gap[i] for i in tail) / len(tail):+.4f}, largest {gap[worst]:+.4f} at {worst}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
