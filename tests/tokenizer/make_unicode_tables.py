"""Writes trainer/tokenizer/unicode_ranges.inc, word_ranges.inc and late_characters.inc.

unicode_ranges.inc: letters, numbers and decimal digits. The classes are taken from the `tokenizers` package itself (its
regular expressions decide what the reference does), the values of decimal digits from Python.

word_ranges.inc: what is part of a word beside an added token with single_word, which another engine of the package decides.

late_characters.inc: characters with a decomposition, a combining class or a composition in utf8proc but not in `tokenizers`,
whose normalizers know an older Unicode.

Run it in the development venv after an update of `tokenizers` or utf8proc.
"""

import ctypes
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

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


def word_characters():
    """Code points that keep an added token from standing alone."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.add_tokens([AddedToken("Zq", single_word=True, normalized=False)])
    found = set()
    for begin in range(0, len(CODE_POINTS), 20000):
        chunk = CODE_POINTS[begin : begin + 20000]
        alone = {first for first, _ in tokenizer.encode("".join(f"{chr(c)}Zq!" for c in chunk)).offsets}
        found.update(c for i, c in enumerate(chunk) if 4 * i + 1 not in alone)
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


def utf8proc_form(name):
    library = ctypes.CDLL("libutf8proc.so.2")
    libc = ctypes.CDLL(None)
    function = getattr(library, f"utf8proc_{name}")
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_char_p]

    def apply(text):
        result = function(text.encode())
        out = ctypes.string_at(result).decode()
        libc.free(ctypes.c_void_p(result))
        return out

    return apply


def late_characters():
    late = set()
    for name in ("NFD", "NFKD"):
        ours, theirs = utf8proc_form(name), getattr(normalizers, name)().normalize_str
        for c in CODE_POINTS[1:]:
            if ours(chr(c)) != theirs(chr(c)):
                late.update({c}, map(ord, ours(chr(c))) if name == "NFD" else ())
    # Order among marks of several classes shows the class of a mark.
    ours, theirs = utf8proc_form("NFD"), normalizers.NFD().normalize_str
    known = "\u0301\u0316\u05b0\u0345\u3099\u094d\u0334"
    for c in CODE_POINTS[1:]:
        texts = [f"a{chr(c)}{mark}" for mark in known] + [f"a{mark}{chr(c)}" for mark in known]
        if any(ours(text) != theirs(text) for text in texts):
            late.add(c)
    return late


# Properties that split patterns use, by their short names.
PROPERTIES = {"L": "Letters", "N": "Numbers", "Lu": "UpperCase", "Ll": "LowerCase", "Lt": "TitleCase", "Lm": "Modifiers", "Lo": "OtherLetters", "M": "Marks", "Nd": "Digits", "P": "Punctuation", "S": "Symbols", "Han": "Han"}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    out = "// Written by tests/tokenizer/make_unicode_tables.py.\n\n"
    for short, name in PROPERTIES.items():
        out += table(f"k{name}", matching(rf"\p{{{short}}}"))
    zeros = ", ".join(f"0x{c:x}" for c in decimal_zeros())
    out += f"// The zeros of the scripts; each is followed by its one to nine.\nconstexpr uint32_t kDecimalZeros[] = {{{zeros}}};\n"
    (root / "trainer/tokenizer/unicode_ranges.inc").write_text(out)
    words = "// Written by tests/tokenizer/make_unicode_tables.py.\n\n" + table("kWords", word_characters())
    (root / "trainer/tokenizer/word_ranges.inc").write_text(words)
    late = "// Written by tests/tokenizer/make_unicode_tables.py.\n\n" + table("kLateCharacters", late_characters())
    (root / "trainer/tokenizer/late_characters.inc").write_text(late)


if __name__ == "__main__":
    sys.exit(main())
