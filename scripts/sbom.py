#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the bill of materials of a container image as CycloneDX 1.6 in JSON, and validates it against CycloneDX's schema.

    scripts/sbom.py LAYOUT OUT.json      LAYOUT: an OCI layout of scripts/image.sh

The components are the files of the image: Kelp's own, those of Debian packages with the versions that are installed on this machine, and
the code of other projects that is compiled into Kelp (THIRD-PARTY-NOTICES.txt).
"""
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import uuid
from datetime import datetime, timezone

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OWN = re.compile(r"^usr/(bin/kelp|lib/libkelp\.so\.|lib/libtritonserver\.so$)|^(LICENSE|THIRD-PARTY-NOTICES\.txt|etc/(passwd|group))$")


def layers(layout):
    """Yields (platform, layer path) of the images of the layout."""
    def read(digest):
        with open(os.path.join(layout, "blobs", *digest.split(":")), encoding="utf-8") as file:
            return json.load(file)

    with open(os.path.join(layout, "index.json"), encoding="utf-8") as file:
        index = read(json.load(file)["manifests"][0]["digest"])
    for item in index["manifests"]:
        for layer in read(item["digest"])["layers"]:
            yield item["platform"]["architecture"], os.path.join(layout, "blobs", *layer["digest"].split(":"))


def package_of(name, architecture):
    """Returns the package of Debian, and its version, that has installed the file on this machine from which a file of the image was copied."""
    triplet = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[architecture]
    if name == "etc/ssl/certs/ca-certificates.crt": # made by the package's script
        package = full = "ca-certificates"
    else:
        # The image has a library under its soname, a link of the package.
        path = os.path.realpath(f"/usr/lib/{triplet}/{os.path.basename(name)}")
        done = subprocess.run(["dpkg-query", "-S", path, path.replace("/usr/lib/", "/lib/", 1)], capture_output=True, text=True, check=False)
        if not done.stdout:
            sys.exit(f"scripts/sbom.py: no package of Debian has installed {path}")
        package = done.stdout.split(":")[0]
        full = f"{package}:{architecture}"
    return package, subprocess.run(["dpkg-query", "-W", "-f", "${Version}", full], capture_output=True, text=True, check=True).stdout


def compiled_in():
    """Yields the projects whose code is compiled into Kelp, as docs/dependencies.md marks them, and the data of Unicode."""
    with open(os.path.join(ROOT, "docs", "dependencies.md"), encoding="utf-8") as file:
        for name, licence in re.findall(r"^\| \[([^\]]*)\].*\| ([^|]*) \| header only \|", file.read(), re.M):
            yield name, licence
    yield "Unicode Character Database", "Unicode-DFS-2016"


def main(layout, out):
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        version = re.search(r"^project\(kelp VERSION ([\d.]+)", file.read(), re.M).group(1)
    kelp = Component(name="kelp", version=version, type=ComponentType.CONTAINER, bom_ref=f"kelp@{version}", licenses=[DisjunctiveLicense(id="Apache-2.0")])
    components = {}
    digests = []
    for architecture, path in layers(layout):
        with open(path, "rb") as file:
            digests.append(hashlib.sha256(file.read()).hexdigest())
        with gzip.open(path) as stream, tarfile.open(fileobj=stream) as archive:
            files = {item.name.lstrip("./"): hashlib.sha256(archive.extractfile(item).read()).hexdigest() for item in archive
                     if item.isfile() and "/share/doc/" not in item.name}
        for name, digest in sorted(files.items()):
            where = Property(name="kelp:file", value=f"{architecture}:/{name}={digest}")
            if OWN.search(name):
                kelp.properties.add(where)
                continue
            package, package_version = package_of(name, architecture)
            key = (package, package_version, architecture)
            if key not in components:
                purl = PackageURL("deb", "debian", package, package_version, {"arch": architecture})
                components[key] = Component(name=package, version=package_version, type=ComponentType.LIBRARY, purl=purl, bom_ref=purl.to_string())
            components[key].properties.add(where)
    for name, licence in compiled_in():
        components[name] = Component(name=name, type=ComponentType.LIBRARY, bom_ref=name, licenses=[DisjunctiveLicense(name=licence)],
                                     description="compiled into Kelp")
    kelp.hashes.update(HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in digests)
    # The same image gives the same document.
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, "kelp " + " ".join(digests)), components=components.values())
    bom.metadata.component = kelp
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc)
    bom.register_dependency(kelp, list(components.values()))
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        sys.exit(f"scripts/sbom.py: the document is not CycloneDX 1.6: {error}")
    with open(out, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    print(f"{out}: {len(components)} components")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: scripts/sbom.py LAYOUT OUT.json")
    main(*sys.argv[1:])
