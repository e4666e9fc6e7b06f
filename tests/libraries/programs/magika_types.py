# SPDX-License-Identifier: Apache-2.0
"""magika: the types of generated files."""
import json
import zlib

import results
from magika import Magika

CONTENTS = {
    "c": b'#include <stdio.h>\n\nint main(int argc, char **argv) {\n    printf("%d %s\\n", argc, argv[0]);\n    return 0;\n}\n',
    "python": b'import os\n\n\ndef sizes(path):\n    return {name: os.stat(name).st_size for name in os.listdir(path)}\n\n\nprint(sizes("."))\n',
    "json": json.dumps({f"key{i}": [i, i * 0.5, str(i)] for i in range(30)}).encode(),
    "html": b"<!DOCTYPE html>\n<html><head><title>Page</title></head><body><h1>Heading</h1><p>A paragraph.</p></body></html>\n",
    "markdown": b"# Heading\n\nA paragraph with `code` and a [link](https://example.com).\n\n- one\n- two\n\n```sh\nls -l\n```\n",
    "shell": b"#!/bin/sh\nset -eu\nfor file in *.c; do\n    gcc -c \"$file\" -o \"${file%.c}.o\"\ndone\n",
    "sql": b"SELECT name, COUNT(*) FROM users LEFT JOIN orders ON users.id = orders.user GROUP BY name ORDER BY 2 DESC;\n",
    "csv": b"name,size,price\n" + b"".join(b"item%d,%d,%d.50\n" % (i, i * 7, i * 3) for i in range(40)),
    "zlib": zlib.compress(bytes(range(256)) * 40),
    "zeros": bytes(4096),
    "short": b"abc",
    "empty": b"",
}

magika = Magika()
found = {name: magika.identify_bytes(content) for name, content in CONTENTS.items()}
results.save(labels={name: str(result.output.label) for name, result in found.items()},
             scores={name: float(result.score) for name, result in found.items()})
