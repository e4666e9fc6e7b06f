#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates src/tensorrt/tables: how C calls the methods of TensorRT's C++ objects.

    tools/trt_tables.py [--headers DIR] [--check]

TensorRT has no C interface. Its library returns objects with virtual method tables in the layout of the Itanium C++ ABI, which is the same on x86-64
and arm64 Linux. The slot of a method depends on the version of the library. This tool reads the headers of each supported version (cargo downloads
them with the crate trtx-sys; they are never committed), prints the tables with clang, verifies them with g++, which also prints the values of
enumerations and the sizes of structures, and writes:

    methods.inc   one line per method: its name in C, its name in C++, its slot in each version (255: the version lacks it)
    enums.h       enumerations whose values all versions share; values.inc: those that differ
    calls.h       one typed inline C function per method
    slots.h       slots of the interfaces that Kelp implements (loggers, allocators, …), the same in all versions

--check writes nothing, and fails if the committed files differ. Needs cargo, clang++, g++ and clang-format.
"""
import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "src", "tensorrt", "tables")
CRATE, CRATE_VERSION = "trtx-sys", "=0.9.1"
TARGET = "x86_64-unknown-linux-gnu"

# Column of the tables -> folder of headers in the crate. The order is that of the columns.
VERSIONS = {
    "rtx_1_5": "TRT-RTX-1.5",
    "rtx_1_6": "TRT-RTX-1.6",
    "rtx_1_7": "TRT-RTX-1.7",
    "enterprise_11_4": "TRT-Enterprise-11.4",
}
NEWEST_FIRST = ["rtx_1_7", "rtx_1_6", "rtx_1_5", "enterprise_11_4"]

# Interfaces that the library implements and Kelp calls, which have no class V… behind them.
DIRECT = ["nvonnxparser::IParser", "nvonnxparser::IParserError", "nvonnxparser::IParserRefitter"]
# Interfaces that Kelp implements and the library calls.
CALLBACKS = ["ILogger", "IErrorRecorder", "IProgressMonitor", "IGpuAllocator", "IGpuAsyncAllocator", "IOutputAllocator", "IProfiler",
             "IDebugListener", "IStreamReaderV2", "IStreamWriter"]
# What needs C++ on our side, or belongs to those who write plugins.
LEFT_OUT = {"VRoot", "VDimensionExpr", "VExprBuilder", "VPluginLayer", "VPluginV2Layer", "VPluginV3Layer"}
LEFT_OUT_METHODS = re.compile(r"getPImpl|getPluginRegistry|setPluginRegistryParent|addPluginV[23]|queryKeys|^query$|^update$"
                              r"|setRefitterObserver|getRefitterObserver")
LEFT_OUT_ENUMS = {"DimensionOperation", "PluginFieldType", "TensorRTPhase", "PluginCapabilityType", "PluginVersion",
                  "PluginCreatorVersion", "RefitTransformKind"}
LONG_NAMES = {"INetworkDefinition": "network", "IBuilderConfig": "config", "IOptimizationProfile": "profile",
              "ICudaEngine": "engine", "IExecutionContext": "context", "IHostMemory": "memory", "IEngineInspector": "inspector"}
STRUCTS = {"nvinfer1::Dims": "trt_dims", "nvinfer1::Dims64": "trt_dims", "nvinfer1::Weights": "trt_weights",
           "nvinfer1::Permutation": "trt_permutation"}
SCALARS = {"void": "void", "bool": "bool", "int": "int", "int32_t": "int32_t", "int64_t": "int64_t", "uint32_t": "uint32_t",
           "uint64_t": "uint64_t", "size_t": "size_t", "std::size_t": "size_t", "float": "float", "double": "double", "char": "char",
           "nvinfer1::AsciiChar": "char", "cudaStream_t": "trt_stream", "cudaEvent_t": "trt_event",
           # words of flags, one bit an enumerator
           **{f"nvinfer1::{name}": "uint32_t" for name in (
               "TacticSources", "TensorFormats", "BuilderFlags", "NetworkDefinitionCreationFlags", "TempfileControlFlags",
               "SerializationFlags")},
           "nvonnxparser::OnnxParserFlags": "uint32_t"}
HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* {} Written by tools/trt_tables.py; change that instead. */
"""


def fail(text):
    sys.exit(f"trt_tables: {text}")


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        fail(f"'{' '.join(command[:3])} …' failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done


def fetch_headers():
    """The folder of headers, brought by cargo."""
    home = os.path.join(ROOT, "build", "trt-headers")
    os.makedirs(os.path.join(home, "src"), exist_ok=True)
    with open(os.path.join(home, "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write(f'[package]\nname = "trt-headers"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n'
                   f'{CRATE} = {{ version = "{CRATE_VERSION}", default-features = false }}\n')
    open(os.path.join(home, "src", "lib.rs"), "w", encoding="utf-8").close()
    run(["cargo", "fetch", "--target", TARGET], cwd=home)
    found = run(["cargo", "metadata", "--offline", "--filter-platform", TARGET, "--format-version", "1"], cwd=home).stdout
    for package in json.loads(found)["packages"]:
        if package["name"] == CRATE:
            return os.path.join(os.path.dirname(package["manifest_path"]), "TensorRT-Headers")
    return fail(f"cargo fetched no '{CRATE}'")


def snake(name):
    for odd, even in (("MoE", "Moe"), ("TopK", "Topk"), ("ReLU", "Relu"), ("KVCache", "Kvcache")):
        name = name.replace(odd, even)
    name = re.sub(r"V(\d)$", r"_v\1", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    name = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name)
    return name.lower()


def short(interface):
    name = interface.split("::")[-1]
    return LONG_NAMES.get(name) or snake(name[1:])


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def class_bodies(text):
    """Yields (name, body) of each class and struct, nested ones within their owner's."""
    for found in re.finditer(r"\bclass\s+(?:TRT_DEPRECATED\s+)?(\w+)\b[^;{()]*\{", text):
        depth, at = 1, found.end()
        while depth > 0 and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield found.group(1), text[found.end():at]


class Version:
    """What one version's headers say."""

    def __init__(self, folder, fake_cuda):
        self.folder, self.fake_cuda = folder, fake_cuda
        self.text = {}
        for name in sorted(os.listdir(folder)):
            if re.match(r"Nv(Infer|InferRuntime|InferRuntimeBase|InferRuntimeCommon|InferImpl|OnnxParser)\.h$", name):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    self.text[name] = without_comments(file.read())
        self.parameters, self.info = {}, {}
        for text in self.text.values():
            for name, body in class_bodies(text):
                info = re.search(r"getInterfaceInfo\(\) const noexcept[^{]*\{\s*return (?:InterfaceInfo)?\s*\{(.*?)\};", body, re.S)
                self.info[name] = info.group(1).strip() if info else self.info.get(name)
                for method in re.finditer(r"\bvirtual\b[^;()]*?(\w+)\s*\(([^()]*)\)", body):
                    names = []
                    for index, part in enumerate(p for p in method.group(2).split(",") if p.strip()):
                        words = re.findall(r"\w+", part.split("=")[0])
                        names.append(words[-1] if len(words) > 1 and words[-1] not in ("const", "int32_t", "int") and "::" not in
                                     part.split()[-1] and part.strip()[-1] not in "*&" else f"p{index}")
                    self.parameters.setdefault((name, method.group(1)), []).append(names)
        self.implementations = sorted(set(re.findall(r"^class (V\w+)", self.text["NvInferImpl.h"], re.M)) - LEFT_OUT)
        self.interfaces = sorted({name for file in ("NvInfer.h", "NvInferRuntime.h")
                                  for name in re.findall(r"^class (?:TRT_DEPRECATED )?(I\w+) : public (?:INoCopy|I\w*Layer)\b", self.text[file], re.M)
                                  if "Plugin" not in name})
        self.enums = self.read_enums()
        with tempfile.TemporaryDirectory() as scratch:
            self.scratch = scratch
            self.probe()
            self.values()

    def read_enums(self):
        enums = {}
        for file, text in self.text.items():
            if file == "NvInferImpl.h":
                continue
            for found in re.finditer(r"\benum class (\w+)\s*:\s*[\w:]+\s*\{([^}]*)\}", text):
                name = found.group(1)
                scope = "nvonnxparser::" if file == "NvOnnxParser.h" else "nvinfer1::"
                scope += "ILogger::" if name == "Severity" else ""
                if name not in LEFT_OUT_ENUMS:
                    enums[scope + name] = re.findall(r"(?:^|,)\s*(k\w+)", found.group(2))
        return enums

    def compile(self, compiler, source, *more):
        path = os.path.join(self.scratch, "probe.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write('#include "NvInfer.h"\n#include "NvOnnxParser.h"\n' + source)
        return run([compiler, "-w", "-std=c++17", f"-I{self.folder}", f"-I{self.fake_cuda}", *more, path], cwd=self.scratch)

    def probe(self):
        """Tables and places of fields, as clang lays them out; the number of slots once more, as g++ does."""
        source = "using namespace nvinfer1;\n"
        for index, name in enumerate(self.implementations):
            source += f"void d{index}(apiv::{name} *p) {{ delete p; }}\n"
        self.compile("g++", source, "-fdump-lang-class", "-c", "-o", "/dev/null")
        counted = self.read_counts()
        for index, name in enumerate(one for one in self.interfaces if counted[f"nvinfer1::{one}"] != 2):
            source += f"void i{index}({name} *p) {{ delete p; }}\n"
        for index, name in enumerate(DIRECT):
            call = "p->getNbErrors()" if name != "nvonnxparser::IParserError" else "p->code()"
            source += f"void x{index}({name} *p) {{ {call}; }}\n"
        for index, name in enumerate(CALLBACKS):
            source += f"void c{index}(nvinfer1::{name} *p) {{ p->getInterfaceInfo(); }}\n"
        for index, name in enumerate(self.interfaces):
            source += f"unsigned long s{index} = sizeof({name});\n"
        dump = self.compile("clang++", source, "-Xclang", "-fdump-vtable-layouts", "-Xclang", "-fdump-record-layouts", "-c", "-o",
                            "/dev/null")
        self.read_tables(dump.stdout + dump.stderr)
        self.read_fields(dump.stdout + dump.stderr)
        self.compare_counts(counted)

    def read_tables(self, dump):
        self.tables = {}
        for found in re.finditer(r"^VTable indices for '([\w:]+)' \(\d+ entries\)\.\n((?: +\d+ \|.*\n)+)", dump, re.M):
            rows = re.findall(r"^ +(\d+) \| (.*)$", found.group(2), re.M)
            self.tables[found.group(1)] = [(int(slot), text) for slot, text in rows]

    def read_fields(self, dump):
        """V… class -> (interface, offset of the pointer to it)."""
        self.fields = {}
        for found in re.finditer(r"^\s+0 \| class nvinfer1::(I\w+)\n((?:\s+\d+ \|.*\n)+)", dump, re.M):
            own = [line for line in found.group(2).splitlines() if re.match(r"\s+\d+ \|   \S", line)]
            for line in own:
                field = re.match(r"\s+(\d+) \|   (?:class )?(?:nvinfer1::)?apiv::(V\w+) \* \w+", line)
                if field:
                    self.fields[field.group(2)] = (found.group(1), int(field.group(1)))

    def read_counts(self):
        """Class -> number of slots, as g++ lays its table out."""
        dumps = [name for name in os.listdir(self.scratch) if name.endswith(".class")]
        with open(os.path.join(self.scratch, dumps[0]), encoding="utf-8") as file:
            found = re.findall(r"^Vtable for ([\w:]+)\n.*: (\d+) entries$", file.read(), re.M)
        return {name: int(count) - 2 for name, count in found}

    def compare_counts(self, counted):
        for name, rows in self.tables.items():
            if name in counted and counted[name] != rows[-1][0] + 1:
                fail(f"{name}: clang has {rows[-1][0] + 1} slots, g++ {counted[name]}")
        for name in self.interfaces:
            # Destructors come first, in most nothing else: trt_destroy stands on it.
            own = self.tables.get(f"nvinfer1::{name}", [(1, "[deleting]")])
            if not any(slot == 1 and "[deleting]" in text for slot, text in own) or counted[f"nvinfer1::{name}"] != own[-1][0] + 1:
                fail(f"{name} is not destroyed through slot 1: {own}")

    def values(self):
        """Values of enumerators and sizes, from a program that g++ builds and that runs here."""
        source = "#include <cstdio>\n#include <cstddef>\nint main() {\n"
        for name, enumerators in self.enums.items():
            source += f'    std::printf("size {name} %zu\\n", sizeof({name}));\n'
            for enumerator in enumerators:
                source += f'    std::printf("{name} {enumerator} %lld\\n", (long long){name}::{enumerator});\n'
        for name in ("Dims", "Weights", "Permutation", "InterfaceInfo"):
            source += f'    std::printf("struct {name} %zu\\n", sizeof(nvinfer1::{name}));\n'
        for field in ("Dims, d", "Weights, values", "Weights, count", "InterfaceInfo, major"):
            source += f'    std::printf("field {field.replace(", ", ".")} %zu\\n", offsetof(nvinfer1::{field}));\n'
        self.compile("g++", source + "}\n", "-o", "probe")
        self.value, self.layout, self.enum_size = {}, {}, {}
        for line in run([os.path.join(self.scratch, "probe")]).stdout.splitlines():
            first, name, number = line.split()
            if first == "size":
                self.enum_size[name] = int(number)
            elif first in ("struct", "field"):
                self.layout[first + " " + name] = int(number)
            else:
                self.value[(first, name)] = int(number)


# ---- from C++ to C ----
def enum_type(name):
    return "trt_" + ("onnx_error_code" if name == "nvonnxparser::ErrorCode" else snake(name.split("::")[-1]))


def c_type(text, enums):
    """The C type for one of clang's, or None when it has none."""
    found = re.match(r"(const )?([\w:]+)\s*(.*)$", text.strip())
    const, base, rest = found.group(1) or "", found.group(2), found.group(3)
    rest = rest.replace("&", "*").replace("const*", "const *").strip()
    stars = re.sub(r"\s+", "", rest.replace("const", " const ")).replace("const", "const ")
    base = base.replace("v_1_0::", "").replace("v_1_1::", "").replace("v_2_0::", "")
    if base in SCALARS:
        name = SCALARS[base]
    elif base in STRUCTS:
        name = STRUCTS[base]
    elif base in enums:
        name = enum_type(base)
    elif re.fullmatch(r"(nvinfer1|nvonnxparser)::I\w+", base) and "*" in stars:
        name = "trt_" + short(base)
    else:
        return None
    if "*" not in stars:
        return name
    return f"{const}{name} {stars.strip()}"


def split_signature(text):
    """('int32_t', 'getNbErrors', ['int']) of clang's line."""
    found = re.match(r"(.*?)([\w:~]+)::(~?\w+)\((.*)\)( const)?( \[.*\])?$", text)
    if not found:
        fail(f"cannot read '{text}'")
    parameters = [part.strip() for part in found.group(4).split(",") if part.strip() and part.strip() != "void"]
    return found.group(1).strip(), found.group(3), parameters


def parameter_name(name):
    name = snake(name)
    return {"default": "value", "register": "value"}.get(name, name)


class Method:
    def __init__(self, interface, cxx, result, parameters, names, offset):
        self.interface, self.cxx, self.result, self.parameters = interface, cxx, result, parameters
        self.names, self.offset, self.slots = names, offset, {}

    @property
    def c_name(self):
        return f"{short(self.interface)}_{snake(self.cxx)}"

    @property
    def signature(self):
        return (self.result, tuple(self.parameters))


def collect(versions):
    """Methods in the order of the newest version that has them."""
    methods = {}
    enums = {name for version in versions.values() for name in version.enums}
    for column in NEWEST_FIRST:
        version = versions[column]
        places = [(f"nvinfer1::apiv::{name}", name, *version.fields[name]) for name in version.implementations
                  if name in version.fields and f"nvinfer1::apiv::{name}" in version.tables]
        places += [(name, name.split("::")[-1], name.split("::")[-1], 0) for name in DIRECT]
        for table, holder, interface, offset in places:
            seen = {}
            for slot, text in version.tables[table]:
                if "~" in text:
                    continue
                result, cxx, parameters = split_signature(text)
                turn = seen[cxx] = seen.get(cxx, -1) + 1
                if LEFT_OUT_METHODS.search(cxx):
                    continue
                types = [c_type(one, enums) for one in [result, *parameters]]
                if None in types:
                    fail(f"no C type for '{text}'")
                names = version.parameters[(holder, cxx)][turn]
                method = Method(interface, cxx, types[0], types[1:], [parameter_name(n) for n in names], offset)
                known = methods.setdefault(method.c_name, method)
                if known.signature != method.signature or known.offset != method.offset:
                    fail(f"{method.c_name} has another signature in {column}: {method.signature}, not {known.signature}")
                if column in known.slots:
                    fail(f"{method.c_name} is there twice in {column}")
                known.slots[column] = slot
    return methods


def write_methods(methods):
    text = HEADER.format("Methods of TensorRT's objects, and their slots by version (255: that version has no such method).")
    text += f"/* TRT_METHOD(name in C, name in C++, {', '.join(VERSIONS)}) */\n"
    for name, method in methods.items():
        slots = ", ".join(str(method.slots.get(column, 255)) for column in VERSIONS)
        text += f'TRT_METHOD({name}, "{method.interface}::{method.cxx}", {slots})\n'
    return text


def declare(kind, name):
    return f"{kind}{'' if kind.endswith('*') else ' '}{name}"


def write_calls(methods):
    handles = sorted({f"trt_{short(m.interface)}" for m in methods.values()}
                     | {found for m in methods.values() for kind in [m.result, *m.parameters]
                        for found in re.findall(r"\btrt_\w+", kind)
                        if found not in {"trt_dims", "trt_weights", "trt_permutation", "trt_stream", "trt_event"}
                        and not found.startswith(tuple(ENUM_TYPES))})
    text = HEADER.format("A typed C function for each method of TensorRT's objects. A method that the library's version lacks,\n"
                         " * or of no object (NULL), does nothing and gives zeros; trt_has tells.")
    text += '#ifndef KELP_TENSORRT_TABLES_CALLS_H_\n#define KELP_TENSORRT_TABLES_CALLS_H_\n\n'
    text += '#include "tensorrt/tables/methods.h"\n\n/* Objects of the library. A layer of any kind is a trt_layer as well (trt_as_layer). */\n'
    text += "".join(f"typedef struct {name} {name};\n" for name in handles) + "\n"
    for name, m in methods.items():
        self_type = f"trt_{short(m.interface)} *"
        names = []
        for one in m.names:
            one = one if one not in ("self", "m", "type_", "slot") else one + "_"
            names.append(one if one not in names else f"{one}{len(names)}")
        arguments = ", ".join(["const trt_methods *m", self_type + "self"] + [declare(k, n) for k, n in zip(m.parameters, names)])
        types = ", ".join(["void *"] + m.parameters)
        values = ", ".join(["self_"] + names)
        text += f"static inline {declare(m.result, 'trt_' + name)}({arguments}) {{\n"
        text += f"    typedef {declare(m.result, '(*call)')}({types});\n"
        text += f"    void *self_ = trt_self(self, {m.offset});\n"
        text += f"    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_{name}));\n"
        if m.result == "void":
            text += f"    if (f != NULL)\n        f({values});\n}}\n"
        elif m.result in ("trt_dims", "trt_weights", "trt_permutation"):
            text += f"    return f != NULL ? f({values}) : ({m.result}){{0}};\n}}\n"
        else:
            text += f"    return f != NULL ? f({values}) : 0;\n}}\n"
    return text + "\n#endif\n"


ENUM_TYPES = []


def write_enums(versions):
    names = []
    for column in NEWEST_FIRST:
        names += [name for name in versions[column].enums if name not in names]
    ENUM_TYPES.extend(enum_type(name) for name in names)
    shared = HEADER.format("TensorRT's enumerations. An enumerator's value is the same in every version that has it, but for those\n"
                           " * in values.inc, which trt_value looks up.")
    shared += "#ifndef KELP_TENSORRT_TABLES_ENUMS_H_\n#define KELP_TENSORRT_TABLES_ENUMS_H_\n\n#include <stdint.h>\n\n"
    differing = HEADER.format("Enumerators whose value, or whose being there, depends on the version (TRT_ABSENT: not there).")
    differing += f"/* TRT_VALUE(name in C, name in C++, {', '.join(VERSIONS)}) */\n"
    for name in names:
        holders = [column for column in NEWEST_FIRST if name in versions[column].enums]
        size = {versions[column].enum_size[name] for column in holders}
        if len(size) != 1:
            fail(f"{name} has several sizes")
        integer = {4: "int32_t", 8: "uint64_t"}[size.pop()]
        enumerators = []
        for column in holders:
            enumerators += [one for one in versions[column].enums[name] if one not in enumerators]
        lines = ""
        for one in enumerators:
            values = [versions[column].value.get((name, one)) for column in VERSIONS]
            c_name = f"{enum_type(name).upper()}_{re.sub(r'^k', '', one).upper()}"
            present = {value for value in values if value is not None}
            if len(present) == 1:
                number = present.pop()
                lines += f"    {c_name} = {number},\n" if abs(number) < 2**31 else ""
            if None in values or len(present) > 1:
                row = ", ".join("TRT_ABSENT" if value is None else str(value) for value in values)
                differing += f'TRT_VALUE({c_name}, "{name.split("::", 1)[1]}::{one}", {row})\n'
        shared += f"typedef {integer} {enum_type(name)}; /* {name} */\n"
        shared += f"enum {{\n{lines}}};\n" if lines else ""
    return shared + "\n#endif\n", differing


def callback_rows(version, column, name):
    """[(slot, name in C, clang's text)] of an interface that Kelp implements."""
    table = next((t for t in version.tables if re.fullmatch(rf"nvinfer1::(v_\d_\d::)?{name}", t)), None)
    if table is None:
        fail(f"{column} has no {name}")
    rows, turns = [], {}
    for slot, text in version.tables[table]:
        tail = snake(split_signature(text)[1])
        tail = "destroy_complete" if "[complete]" in text else "destroy_deleting" if "[deleting]" in text else tail
        turns[tail] = turns.get(tail, 0) + 1
        text = "" if "~" in text else " /* " + re.sub(r"nvinfer1::(v_[0-9]_[0-9]::)?", "", text) + " */"
        rows.append((slot, tail if turns[tail] == 1 else f"{tail}{turns[tail]}", text))
    return rows


def write_slots(versions):
    text = HEADER.format("Slots of the interfaces that Kelp implements and the library calls. Slot 0 is getAPILanguage everywhere.")
    text += "#ifndef KELP_TENSORRT_TABLES_SLOTS_H_\n#define KELP_TENSORRT_TABLES_SLOTS_H_\n\nenum {\n"
    for name in CALLBACKS:
        by_flavor = {}
        for column, version in versions.items():
            rows = callback_rows(version, column, name)
            known = by_flavor.setdefault(column.split("_")[0], rows)
            if [row[:2] for row in known] != [row[:2] for row in rows]:
                fail(f"{name} differs in {column}: {known} {rows}")
        flavors = list(by_flavor)
        same = all([row[:2] for row in rows] == [row[:2] for row in by_flavor[flavors[0]]] for rows in by_flavor.values())
        for flavor in flavors[:1] if same else flavors:
            prefix = ("" if same else flavor.upper() + "_") + short(name).upper()
            text += f"    /* {name}{'' if same else ' of flavor ' + flavor} */\n"
            for slot, tail, comment in by_flavor[flavor]:
                text += f"    TRT_SLOT_{prefix}_{tail.upper()} = {slot},{comment}\n"
            text += f"    TRT_SLOTS_{prefix} = {by_flavor[flavor][-1][0] + 1},\n"
    text += "    /* objects that are destroyed through another slot than 1 */\n"
    for name in DIRECT:
        slots = {slot for version in versions.values() for slot, one in version.tables[name] if "[deleting]" in one}
        if len(slots) != 1:
            fail(f"{name} is destroyed through several slots: {slots}")
        text += f"    TRT_SLOT_{short(name).upper()}_DESTROY_DELETING = {slots.pop()},\n"
    text += "};\n\n/* Result of getInterfaceInfo: name, major and minor version. */\n"
    for name in CALLBACKS:
        found = {version.info.get(name) for version in versions.values()}
        if len(found) != 1 or None in found:
            fail(f"getInterfaceInfo of {name}: {found}")
        text += f"#define TRT_INTERFACE_{short(name).upper()} {found.pop()}\n"
    return text + "\n#endif\n"


def write_layout(versions):
    layouts = [version.layout for version in versions.values()]
    expected = {"struct Dims": 72, "field Dims.d": 8, "struct Weights": 24, "field Weights.values": 8, "field Weights.count": 16,
                "struct Permutation": 32, "struct InterfaceInfo": 16, "field InterfaceInfo.major": 8}
    for column, layout in zip(versions, layouts):
        if layout != expected:
            fail(f"structures of {column} are not as methods.h has them: {layout}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--headers", help="a folder with the headers (TRT-RTX-1.7, …) instead of asking cargo")
    arguments.add_argument("--check", action="store_true", help="compare with what is committed")
    options = arguments.parse_args()
    headers = options.headers or fetch_headers()
    versions = {column: Version(os.path.join(headers, folder), headers) for column, folder in VERSIONS.items()}
    write_layout(versions)
    shared, differing = write_enums(versions)
    methods = collect(versions)
    files = {"methods.inc": write_methods(methods), "calls.h": write_calls(methods), "enums.h": shared,
             "values.inc": differing, "slots.h": write_slots(versions)}
    wrong = 0
    for name, text in files.items():
        path = os.path.join(OUT, name)
        if not options.check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        committed = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if committed != text:
            wrong += 1
            sys.stdout.writelines(list(difflib.unified_diff(committed.splitlines(True), text.splitlines(True), name, "fresh"))[:60])
    slots = {column: sum(column in method.slots for method in methods.values()) for column in VERSIONS}
    print(f"{len(methods)} methods ({', '.join(f'{k}: {v}' for k, v in slots.items())}); "
          f"{'%d of %d files differ' % (wrong, len(files)) if options.check else '%d files written' % len(files)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
