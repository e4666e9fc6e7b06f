# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the documentation, which tests run as they are."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks(page, heading, language="sh"):
    """Returns the code blocks of a language below a heading of docs/PAGE, up to the next heading of its level or a higher one."""
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as file:
        text = file.read()
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.M)
    if found is None:
        raise AssertionError(f"docs/{page} has no heading '{heading}'")
    section = text[found.end():]
    following = re.search(rf"^#{{1,{len(found.group(1))}}} ", re.sub(r"^```.*?^```", lambda match: "x" * len(match.group()), section, flags=re.M | re.S), re.M)
    section = section[:following.start()] if following else section
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.M | re.S)


def block(page, heading, language="sh"):
    """Returns the only such block."""
    found = blocks(page, heading, language)
    if len(found) != 1:
        raise AssertionError(f"docs/{page}: expected one block of {language} below '{heading}', found {len(found)}")
    return found[0]
