# SPDX-License-Identifier: Apache-2.0
"""Generates a page of Markdown for a public C header, with libclang: the comment and the text of each declaration, in the order
of the header."""
import os
import re
import subprocess

import clang.cindex
from clang.cindex import CursorKind

# Text of section comments such as "/* ---- Loading ---- */", the rest of which is an introduction.
SECTION = re.compile(r"^-{3,} (.+?) -{3,}\s*")
DECLARATIONS = {CursorKind.FUNCTION_DECL, CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.ENUM_DECL,
                CursorKind.TYPEDEF_DECL, CursorKind.VAR_DECL, CursorKind.MACRO_DEFINITION}


def compiler_includes():
    """Returns the directory of stddef.h, which PyPI's libclang lacks."""
    return subprocess.run(["gcc", "-print-file-name=include"], check=True, capture_output=True, text=True).stdout.strip()


def comment_text(comment):
    """Returns the text of a comment without its frame."""
    lines = comment[2:-2].split("\n")
    return "\n".join(re.sub(r"^\s*\*? ?", "", line).rstrip() for line in lines).strip("\n").strip()


def to_markdown(text):
    """Turns the text of a comment into Markdown: indented blocks become code, and lists get the empty line before them."""
    out = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        code = [line for line in lines if line.startswith("  ")]
        if len(code) == len(lines) and not lines[0].lstrip().startswith("- "):
            out.append("```text\n" + block + "\n```")
            continue
        shown, in_list, in_code = [], False, False
        for line in lines:
            is_item = re.match(r"\s*- ", line)
            is_code = line.startswith("  ") and not is_item and not in_list
            if is_code != in_code:
                shown.append("\n```text" if is_code else "```\n")
                in_code = is_code
            if is_item and not in_list:
                shown.append("")
                in_list = True
            shown.append(line if is_code else escape(line))
        if in_code:
            shown.append("```")
        out.append("\n".join(shown))
    return "\n\n".join(out)


def escape(line):
    """Escapes what is Markdown or HTML by accident, outside of code."""
    parts = line.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([<>*_\[\]])", r"\\\1", parts[i])
    return "`".join(parts)


class Header:
    """A header: its declarations and comments by position."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8") as file:
            self.text = file.read()
        self.bytes = self.text.encode()
        language = ["-x", "c++", "-std=c++17"] if path.endswith(".hpp") else ["-x", "c", "-std=c17"]
        unit = clang.cindex.Index.create().parse(
            os.path.join(root, path), args=[*language, "-I" + os.path.join(root, "include"), "-isystem", compiler_includes()],
            options=clang.cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [str(d) for d in unit.diagnostics if d.severity >= clang.cindex.Diagnostic.Error]
        if errors:
            raise ValueError(f"{path}: {errors[0]}")
        self.unit = unit

    def cursors(self):
        """Yields the declarations of this file in order, without those inside another."""
        end, found = 0, []
        for cursor in self.unit.cursor.get_children():
            stack = [cursor]
            if cursor.kind in (CursorKind.LINKAGE_SPEC, CursorKind.NAMESPACE):
                stack = list(cursor.get_children())
            found += [c for c in stack if c.kind in DECLARATIONS and c.location.file and c.location.file.name.endswith(self.path)]
        for cursor in sorted(found, key=lambda c: (c.extent.start.offset, -c.extent.end.offset)):
            if cursor.extent.start.offset >= end:
                end = cursor.extent.end.offset
                yield cursor

    def source(self, cursor):
        """Returns the text of a declaration, to its semicolon, or to the end of the macro."""
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        if cursor.kind == CursorKind.MACRO_DEFINITION:
            return "#define " + self.bytes[start:end].decode()
        stop = self.bytes.find(b";", end)
        # The attributes before a function are macros, which begin the line.
        line = self.bytes.rfind(b"\n", 0, start) + 1
        return self.bytes[line:stop + 1].decode()

    def comments(self):
        """Returns the comments as (start, end, text)."""
        return [(len(self.text[:m.start()].encode()), len(self.text[:m.end()].encode()), comment_text(m.group(0)))
                for m in re.finditer(r"/\*.*?\*/", self.text, re.S)]


def capitalized(text):
    return text[:1].upper() + text[1:]


def name_of(cursor, source):
    if cursor.spelling and not cursor.spelling.startswith("("):
        return cursor.spelling
    named = re.search(r"(\w+)\s*;$", source)
    return named.group(1) if named else None


def page(root, path):
    """Returns the page of a header, and the names that it declares."""
    header = Header(root, path)
    comments, cursors = header.comments(), list(header.cursors())
    spans = [(c.extent.start.offset, c.extent.end.offset) for c in cursors]
    outside = [c for c in comments if not any(a <= c[0] < b for a, b in spans)]
    out, names, used = [], [], 0
    title = os.path.relpath(path, "include")
    introduction = next((text for _, _, text in outside if text.startswith(title + ":")), "")
    out.append(f"# {title}\n\n```c\n#include <{title}>\n```\n\n{to_markdown(capitalized(introduction.removeprefix(title + ':').strip()))}\n")
    for cursor in cursors:
        source = header.source(cursor)
        name = name_of(cursor, source)
        if name is None or name.endswith("_H_") or name.endswith("_HPP_") or name.startswith("_"):
            continue
        start = cursor.extent.start.offset
        described = None
        for begin, end, text in outside[used:]:
            if begin > start:
                break
            used += 1
            section = SECTION.match(text)
            if section:
                out.append(f"## {section.group(1)}\n\n{to_markdown(text[section.end():].strip())}\n")
            elif not text.startswith((title + ":", "SPDX")):
                described = text
        if names and described is None and cursor.kind != CursorKind.MACRO_DEFINITION and name in names:
            continue
        trailing = next((text for begin, _, text in outside if header.bytes[cursor.extent.end.offset:begin].strip(b" ;") == b""
                         and begin > start), None)
        names.append(name)
        out.append(f"### {escape(name)} {{ #{name} }}\n")
        if described or trailing:
            out.append(to_markdown(described or trailing) + "\n")
        out.append(f"```c\n{source}\n```\n")
    return "\n".join(out), names
