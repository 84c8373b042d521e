"""Writes trainer/tokenizer/unicode_ranges.inc: letters, numbers and decimal digits.

The classes are taken from the `tokenizers` package itself (its regular expressions decide what the reference does), the
values of decimal digits from Python. Run it in the development venv after an update of `tokenizers`.
"""

import pathlib
import sys

from tokenizers import Regex, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def matching(pattern):
    """Code points that `pattern` matches in the reference's engine."""
    splitter = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for begin in range(0, len(CODE_POINTS), 20000):
        chunk = CODE_POINTS[begin : begin + 20000]
        text = "!".join(map(chr, chunk))  # '!' is in none of the classes
        left = {k for _, (a, b) in splitter.pre_tokenize_str(text) for k in range(a, b)}
        found.update(c for i, c in enumerate(chunk) if 2 * i not in left)
    return found


def ranges(points):
    result = []
    for c in sorted(points):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def table(name, points):
    pairs = ", ".join(f"{{0x{a:x}, 0x{b:x}}}" for a, b in ranges(points))
    return f"constexpr CodePointRange {name}[] = {{{pairs}}};\n"


def decimal_zeros():
    return sorted(c for c in CODE_POINTS if chr(c).isdecimal() and int(chr(c)) == 0)


# Properties that split patterns use, by their short names.
PROPERTIES = {"L": "Letters", "N": "Numbers", "Lu": "UpperCase", "Ll": "LowerCase", "Lt": "TitleCase", "Lm": "Modifiers", "Lo": "OtherLetters", "M": "Marks"}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    out = "// Written by tests/tokenizer/make_unicode_tables.py.\n\n"
    for short, name in PROPERTIES.items():
        out += table(f"k{name}", matching(rf"\p{{{short}}}"))
    zeros = ", ".join(f"0x{c:x}" for c in decimal_zeros())
    out += f"// The zeros of the scripts; each is followed by its one to nine.\nconstexpr uint32_t kDecimalZeros[] = {{{zeros}}};\n"
    (root / "trainer/tokenizer/unicode_ranges.inc").write_text(out)


if __name__ == "__main__":
    sys.exit(main())
