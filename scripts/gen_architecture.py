#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the dependency diagrams of docs/architecture.md from the #include directives in src/.

    gen_architecture.py [--check]      --check compares instead of writing

An arrow from A to B means that a file of directory A includes a header of directory B. An arrow is omitted if it follows from
other arrows. Dashed arrows are includes of public headers by modules outside libkelp.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "architecture.md")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
# What each module is linked into; all others are part of libkelp.so.
PRODUCTS = {"server": "libtritonserver.so", "sdk": "libkelp_backend.a", "frontends": "kelp", "cli": "kelp"}
ENGINE = "libkelp.so"
# Public headers of base and tensor, which every module may use.
PUBLIC_BASE = {"kelp/status.h", "kelp/allocator.h", "kelp/dlpack.h", "kelp/event.h", "kelp/tensor.h", "kelp/export.h"}


def sources():
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".inc")):
                path = os.path.relpath(os.path.join(folder, name), os.path.join(ROOT, "src"))
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield path, INCLUDE.findall(file.read())


def resolved(header, path, known):
    """Returns the path of an included header below src/, or None."""
    for candidate in (header, os.path.normpath(os.path.join(os.path.dirname(path), header))):
        if candidate in known:
            return candidate
    return None


def dependencies():
    """Returns (file -> included files), and (module -> groups of public headers)."""
    files = dict(sources())
    edges, public = {}, {}
    for path, includes in files.items():
        edges[path] = {resolved(header, path, files) for quote, header in includes if quote == '"'} - {None}
        for quote, header in includes:
            first = header.split("/")[0]
            if quote == "<" and first in ("kelp", "triton") and header not in PUBLIC_BASE:
                public.setdefault(path.split("/")[0], set()).add(first)
    return edges, public


def grouped(edges, group):
    """Merges files with the same group; None drops a file."""
    result = {}
    for source, targets in edges.items():
        name = group(source)
        if name is None:
            continue
        found = result.setdefault(name, set())
        found |= {group(target) for target in targets} - {name, None}
    return result


def reachable(edges, start, without):
    """Returns the nodes reachable from `start` without using the edge `without`."""
    found, pending = set(), [start]
    while pending:
        at = pending.pop()
        for target in edges.get(at, ()):
            if (at, target) != without and target not in found:
                found.add(target)
                pending.append(target)
    return found


def reduced(edges):
    """Returns the edges without those that follow from other edges. Cycles are kept."""
    left = {source: set(targets) for source, targets in edges.items()}
    for source in sorted(left):
        for target in sorted(left[source]):
            cyclic = source in reachable(edges, target, None)
            if not cyclic and target in reachable(left, source, (source, target)):
                left[source].discard(target)
    return left


def node(name):
    """Returns the identifier of a node: some names are keywords of Mermaid."""
    return name + "_" if name in ("graph", "end", "class", "style", "default") else name


def declaration(name):
    return name if node(name) == name else f'{node(name)}["{name}"]'


def arrows(edges, indent):
    return [f"{indent}{node(source)} --> {node(target)}" for source in sorted(edges) for target in sorted(edges[source])]


def identifier(name):
    return name.replace("/", "_").replace(".", "_")


def module_diagram(edges, public):
    modules = grouped(edges, lambda path: path.split("/")[0])
    lines = ["```mermaid", "flowchart TD"]
    products = {}
    for module in sorted(modules):
        products.setdefault(PRODUCTS.get(module, ENGINE), []).append(module)
    for product, members in sorted(products.items()):
        lines.append(f'    subgraph {identifier(product)}_["{product}"]')
        lines += [f"        {declaration(module)}" for module in members]
        lines.append("    end")
    lines.append('    kelp_h(["include/kelp"])')
    lines.append('    triton_h(["include/triton"])')
    lines += arrows(reduced(modules), "    ")
    lines += [f"    {node(module)} -.-> {header}_h" for module in sorted(PRODUCTS) for header in sorted(public.get(module, ()))]
    return "\n".join(lines + ["```"])


def inner_diagram(edges, module):
    """The directories of a module. Files of the module's own directory are one node, except headers without a source file."""
    def group(path):
        parts = path.split("/")
        if parts[0] != module:
            return None
        alone = parts[-1].endswith(".h") and path[:-2] + ".c" not in edges
        return parts[1] if len(parts) > 2 else parts[-1][:-2] if alone else module

    inner = grouped(edges, group)
    lines = ["```mermaid", "flowchart TD"]
    lines += [f"    {declaration(name)}" for name in sorted(inner)]
    lines += arrows(reduced(inner), "    ")
    return "\n".join(lines + ["```"])


def generated(text):
    edges, public = dependencies()

    def replace(match):
        name = match[1]
        diagram = module_diagram(edges, public) if name == "modules" else inner_diagram(edges, name)
        return f"<!-- diagram {name}: begin -->\n{diagram}\n<!-- diagram {name}: end -->"

    return re.sub(r"<!-- diagram (\w+): begin -->\n.*?<!-- diagram \1: end -->", replace, text, flags=re.S)


def main():
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    wanted = generated(text)
    if "--check" in sys.argv:
        if text != wanted:
            print("docs/architecture.md does not match the #include directives in src/; run scripts/gen_architecture.py")
        return int(text != wanted)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
