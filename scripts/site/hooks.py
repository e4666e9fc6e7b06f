# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs: pages from files outside of docs/.

- reference/c/NAME.md      the reference of a public header
- reference/python.md      the reference of the Python package
- notebooks/NAME.md        the notebooks of examples/notebooks
- contributing.md, changelog.md
- source/PATH.md           files of the repository to which pages link

Links of pages to such files lead to these pages.
"""
import base64
import os
import posixpath
import re
import subprocess
import sys

from mkdocs.structure.files import File

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import c_reference  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
LANGUAGES = {".c": "c", ".h": "c", ".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".rs": "rust", ".toml": "toml", ".sh": "bash",
             ".pbtxt": "text", ".txt": "text", ".inc": "c", ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".service": "ini"}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
# A link whose text is the name of the file: the site shows the title of the page.
NAMED_LINK = re.compile(r"\[((?:docs/)?[\w-]+\.md)\]\(((?:docs/)?[\w-]+\.md)((?:#[\w-]*)?)\)")
MAX_SOURCE = 100_000
PYTHON_MODULES = ("kelp", "kelp.builder", "kelp.runtime")

sources = {}  # path in the repository -> uri of its page


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def tracked(*words):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", *words], cwd=ROOT, check=True, capture_output=True)
    return sorted(name for name in listed.stdout.decode().split("\0") if name)


# ---- notebooks ----

def output_text(output):
    """Returns an output of a cell as Markdown."""
    data = output.get("data", {})
    if "image/png" in data:
        return f"![output](data:image/png;base64,{''.join(data['image/png']).strip()})\n"
    text = output.get("text") or data.get("text/plain") or ""
    return f"```text\n{''.join(text).rstrip()}\n```\n" if text else ""


def notebook_page(path):
    import nbformat
    notebook = nbformat.read(os.path.join(ROOT, path), as_version=4)
    out = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            out.append(cell.source + "\n")
        elif cell.cell_type == "code":
            out.append(f"```python\n{cell.source.rstrip()}\n```\n")
            out += [output_text(output) for output in cell.outputs]
    data = base64.b64encode(read(path).encode()).decode()
    out.append(f'[Download the notebook](data:application/x-ipynb+json;base64,{data}){{ download="{os.path.basename(path)}" }}\n')
    return "\n".join(out)


# ---- pages ----

def python_page():
    """Returns the reference: one section for each module with the names of its __all__."""
    out = ["# Python reference\n\n[Python](../python.md) has examples.\n"]
    for module in PYTHON_MODULES:
        out.append(f"## {module} {{ #module-{module.replace('.', '-')} }}\n\n::: {module}\n    options:\n      members_order: source\n"
                   "      show_root_heading: false\n      show_root_toc_entry: false\n      show_if_no_docstring: true\n"
                   "      filters: ['!^_']\n")
    return "\n".join(out)


def source_page(path):
    """Returns a file of the repository as a page, or the list of a directory."""
    head = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n"
    if os.path.isdir(os.path.join(ROOT, path)):
        rows = [name for name in tracked(path) if os.path.splitext(name)[1] in LANGUAGES or name.endswith(".md")]
        return head + "".join(f"- [{os.path.relpath(name, path)}]({link_to('source/' + path + '.md', name)})\n"
                              if name in sources else f"- {os.path.relpath(name, path)}\n" for name in rows)
    text = read(path)
    if path.endswith(".md"):
        return "---\nsearch:\n  exclude: true\n---\n" + text
    fence = "`" * (max([2, *(len(m) for m in re.findall("`+", text))]) + 1)
    return f"{head}{fence}{LANGUAGES.get(os.path.splitext(path)[1], 'text')}\n{text.rstrip()}\n{fence}\n"


def uri_of(path):
    """Returns the page of a file of the repository."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    header = re.fullmatch(r"include/kelp/(\w+)\.(?:h|hpp)", path)
    if header and path.endswith(".h"):
        return f"reference/c/{header.group(1)}.md"
    notebook = re.fullmatch(r"examples/notebooks/(.+)\.ipynb", path)
    if notebook:
        return f"notebooks/{notebook.group(1)}.md"
    return f"source/{path}.md"


def link_to(page_uri, path):
    return posixpath.relpath(uri_of(path), posixpath.dirname(page_uri) or ".")


def targets(text, directory):
    """Yields the files of the repository to which a page in `directory` of the repository links."""
    for _, target, _ in LINK.findall(text):
        name = target.partition("#")[0]
        if name and not re.match(r"[a-z]+:", name):
            path = os.path.normpath(os.path.join(directory, name))
            if os.path.exists(os.path.join(ROOT, path)):
                yield path


def find_sources():
    """Finds the files outside of docs/ to which pages link, and those in directories to which they link."""
    wanted = set()
    for page in [*tracked("docs/*.md"), *PAGES]:
        wanted.update(targets(read(page), os.path.dirname(page)))
    for path in sorted(wanted):
        if path.startswith("docs") or path in PAGES or not uri_of(path).startswith("source/"):
            continue
        inside = tracked(path) if os.path.isdir(os.path.join(ROOT, path)) else []
        for name in [path, *inside]:
            full = os.path.join(ROOT, name)
            if os.path.isdir(full) or (os.path.splitext(name)[1] in LANGUAGES and os.path.getsize(full) <= MAX_SOURCE) or name == path:
                sources[name] = uri_of(name)
            elif name.endswith(".md"):
                sources[name] = uri_of(name)


def title_of(path):
    heading = re.search(r"^# (.+)$", read(path), re.M)
    return heading.group(1) if heading else path


def rewrite(text, directory, page_uri):
    """Makes links to files of the repository lead to their pages."""
    def named(match):
        path = os.path.normpath(os.path.join(directory, match.group(2)))
        if not os.path.isfile(os.path.join(ROOT, path)):
            return match.group(0)
        return f"[{title_of(path)}]({match.group(2)}{match.group(3)})"

    def change(match):
        target = match.group(2)
        name, mark, anchor = target.partition("#")
        if not name or re.match(r"[a-z]+:", name):
            return match.group(0)
        path = os.path.normpath(os.path.join(directory, name))
        if not os.path.exists(os.path.join(ROOT, path)):
            return match.group(0)
        if re.search(r"\.(png|svg|jpg)$", path):
            return match.group(0) if page_uri.count("/") == 0 and directory == "docs" else \
                match.group(1) + posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(page_uri) or ".") + match.group(3)
        return match.group(1) + link_to(page_uri, path) + mark + anchor + match.group(3)
    fenced, out = False, []
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        out.append(line if fenced else LINK.sub(change, NAMED_LINK.sub(named, line)))
    return "\n".join(out)


# ---- hooks ----

directories = {}  # uri -> directory of the repository that its links are relative to


def on_files(files, config):
    def add(uri, content, directory=None):
        if directory is not None:
            directories[uri] = directory
        files.append(File.generated(config, uri, content=content))

    sources.clear()
    find_sources()
    with open(os.environ["KELP_MERMAID"], encoding="utf-8") as file:
        add("assets/mermaid.min.js", file.read())
    for path in tracked("include/kelp/*.h"):
        if path in tracked("include/kelp/*.inc"):
            continue
        add(uri_of(path), c_reference.page(ROOT, path)[0])
    add("reference/python.md", python_page())
    for path in tracked("examples/notebooks/*.ipynb"):
        add(uri_of(path), notebook_page(path), "examples/notebooks")
    add("contributing.md", read("CONTRIBUTING.md"), "")
    add("changelog.md", read("CHANGELOG.md"), "")
    for path, uri in sources.items():
        add(uri, source_page(path), os.path.dirname(path) if path.endswith(".md") else None)
    return files


def on_config(config):
    """Adds the generated pages to the navigation."""
    headers = tracked("include/kelp/*.h")
    pages = [{os.path.basename(path): uri_of(path)} for path in headers]
    for section in config["nav"]:
        if "Reference" in section:
            section["Reference"][:0] = [{"C interface": pages}, {"Python interface": "reference/python.md"}]
            section["Reference"] += [{"Changelog": "changelog.md"}, {"Contributing": "contributing.md"}]
    # Pages that the navigation of mkdocs.yml lacks.
    listed = re.findall(r"[\w/-]+\.md", repr(config["nav"]))
    further = [uri_of(path) for path in tracked("docs/*.md") if uri_of(path) not in listed]
    config["nav"] += [{"More": further}] if further else []
    notebooks = [uri_of(path) for path in tracked("examples/notebooks/*.ipynb")]
    if notebooks:
        config["nav"].insert(2, {"Gallery": ["gallery.md", *notebooks]})
        for section in config["nav"]:
            if "Get started" in section:
                section["Get started"] = [page for page in section["Get started"] if "Gallery" not in page]
    return config


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    if uri.startswith("source/") and uri not in directories or uri.startswith("reference/"):
        return markdown
    return rewrite(markdown, directories.get(uri, os.path.dirname("docs/" + uri)), uri)
