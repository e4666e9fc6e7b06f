// SPDX-License-Identifier: Apache-2.0
// The status page: models, their load, and a form that sends requests. It uses the public HTTP API only. Text from the server is
// inserted as text nodes, never as HTML.
"use strict";

const POLL_MS = 2000;
const HISTORY = 60; // samples: two minutes
const SHOWN_VALUES = 200; // of an output
const COMMAND_VALUES = 64; // of all inputs, in the curl command
const MAX_ELEMENTS = 64 * 1024 * 1024;

const $ = (id) => document.getElementById(id);
const models = new Map(); // key → {name, version, state, reason, stats, samples, pending}
let selected = null;
let pollTimer = null;

function element(tag, properties, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function show(node, text) {
  node.textContent = text;
  node.hidden = !text;
}

// ---- the API ----

async function call(path, options = {}) {
  const headers = new Headers(options.headers);
  if ($("token").value) headers.set("Authorization", "Bearer " + $("token").value);
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  if (response.status === 401) $("token-label").hidden = false;
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    message = JSON.parse(text).error || text;
  } catch {
    // The body is not JSON; it is shown as it is.
  }
  throw new Error(message || `${response.status} ${response.statusText}`);
}

const getJson = async (path, options) => (await call(path, options)).json();

// JSON with integers beyond 2^53 kept as they are written, for display.
const getText = async (path) => (await call(path)).text();

const modelPath = (model) => `/v2/models/${encodeURIComponent(model.name)}/versions/${encodeURIComponent(model.version)}`;

// ---- polling ----

function keyOf(name, version) {
  return JSON.stringify([name, version]);
}

function readIndex(index) {
  const seen = new Set();
  for (const entry of index) {
    const version = entry.version || "";
    const key = keyOf(entry.name, version);
    seen.add(key);
    if (!models.has(key)) models.set(key, { key, name: entry.name, version, samples: [] });
    Object.assign(models.get(key), { state: entry.state || "UNLOADED", reason: entry.reason || "" });
  }
  for (const key of models.keys()) if (!seen.has(key)) models.delete(key);
}

function addSample(model, stats, now) {
  const last = model.last;
  const inference = stats.inference_stats;
  const total = {
    now,
    requests: inference.success.count + inference.fail.count,
    success: inference.success.count,
    ns: inference.success.ns,
    queue: inference.queue.ns,
  };
  model.stats = stats;
  model.last = total;
  if (!last || total.requests < last.requests) return; // the first sample, or the model was reloaded
  const count = total.success - last.success;
  model.samples.push({
    rate: (total.requests - last.requests) / Math.max((now - last.now) / 1000, 1e-3),
    latency: count ? (total.ns - last.ns) / count / 1e6 : null,
    queue: count ? (total.queue - last.queue) / count / 1e6 : null,
    pending: model.pending ?? null,
  });
  if (model.samples.length > HISTORY) model.samples.shift();
}

// Reads the gauge of pending requests from the Prometheus text, if this port serves it.
async function readPending() {
  let text;
  try {
    text = await getText("/metrics");
  } catch {
    return; // metrics are optional
  }
  const line = /^nv_inference_pending_request_count\{(.*)\} (\S+)$/gm;
  for (const [, labels, value] of text.matchAll(line)) {
    const label = (name) => (new RegExp(`(?:^|,)${name}="((?:[^"\\\\]|\\\\.)*)"`).exec(labels) || [])[1];
    const model = models.get(keyOf(label("model"), label("version")));
    if (model) model.pending = Number(value);
  }
}

async function poll() {
  clearTimeout(pollTimer);
  try {
    const [index, stats] = await Promise.all([
      getJson("/v2/repository/index", { method: "POST", body: "{}" }),
      getJson("/v2/models/stats"),
    ]);
    readIndex(index);
    await readPending();
    const now = performance.now();
    for (const entry of stats.model_stats) {
      const model = models.get(keyOf(entry.name, entry.version));
      if (model) addSample(model, entry, now);
    }
    let ready = true;
    try {
      await call("/v2/health/ready");
    } catch {
      ready = false;
    }
    setHealth(ready ? "ready" : "not ready", ready);
    show($("error"), "");
    draw();
  } catch (error) {
    setHealth("no connection", false);
    show($("error"), `The server cannot be read: ${error.message}`);
  }
  if (!document.hidden) pollTimer = setTimeout(poll, POLL_MS);
}

function setHealth(text, good) {
  $("health").textContent = text;
  $("health").className = "badge " + (good ? "good" : "bad");
}

// ---- the table ----

function formatMs(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  return ms < 100 ? `${ms.toFixed(1)} ms` : `${ms.toFixed(0)} ms`;
}

function average(stats, part) {
  const { count } = stats.inference_stats.success;
  return count ? stats.inference_stats[part].ns / count / 1e6 : null;
}

// Returns the row of a model, which is made once, so that a click is not lost when the table changes.
function row(model) {
  if (!model.row) {
    const name = element("button", { type: "button" }, model.name);
    name.addEventListener("click", () => select(model.key));
    const cells = Array.from({ length: 9 }, (_, i) => element("td", { className: i > 2 ? "number" : "" }));
    cells[0].append(name);
    cells[2].className = "state";
    cells[2].append(element("span"), element("span"));
    model.row = element("tr", {}, ...cells);
  }
  const sample = model.samples[model.samples.length - 1];
  const { stats } = model;
  const { cells } = model.row;
  const ready = model.state === "READY";
  model.row.className = model.key === selected ? "selected" : "";
  cells[0].firstChild.disabled = !ready;
  cells[2].firstChild.className = ready ? "good" : "bad";
  cells[2].firstChild.textContent = model.state;
  cells[2].lastChild.textContent = model.reason ? ` ${model.reason}` : "";
  const texts = {
    1: model.version || "–",
    3: stats ? stats.inference_stats.success.count : "–",
    4: stats ? stats.inference_stats.fail.count : "–",
    5: sample ? sample.rate.toFixed(sample.rate < 10 ? 1 : 0) : "–",
    6: stats ? formatMs(sample?.latency ?? average(stats, "success")) : "–",
    7: stats ? formatMs(sample?.queue ?? average(stats, "queue")) : "–",
    8: model.pending ?? "–",
  };
  for (const [i, text] of Object.entries(texts)) cells[i].textContent = text;
  return model.row;
}

function draw() {
  const body = document.querySelector("#models tbody");
  const rows = [...models.values()].map(row);
  if (rows.length !== body.rows.length || rows.some((tr, i) => tr !== body.rows[i])) body.replaceChildren(...rows);
  $("no-models").hidden = models.size > 0;
  const model = models.get(selected);
  $("model").hidden = !model;
  if (!model) return;
  drawChart($("latency"), model.samples, ["latency", "queue"]);
  drawChart($("load"), model.samples, ["rate", "pending"]);
  $("statistics").textContent = JSON.stringify(model.stats ?? {}, null, 2);
}

// ---- charts ----

function drawChart(canvas, samples, names) {
  const style = getComputedStyle(document.documentElement);
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const values = samples.flatMap((s) => names.map((name) => s[name])).filter((v) => v !== null);
  const top = Math.max(...values, 0) * 1.1 || 1;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = style.getPropertyValue("--muted");
  context.strokeStyle = style.getPropertyValue("--line");
  for (const part of [0.5, 1]) {
    const y = height - (height - 14) * part / 1.1 - 1;
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(width, y);
    context.stroke();
    context.fillText(Number((top / 1.1 * part).toPrecision(3)), 4, y - 3);
  }
  names.forEach((name, i) => {
    context.strokeStyle = style.getPropertyValue(i ? "--queue" : "--request");
    context.lineWidth = 2;
    context.beginPath();
    let open = false;
    samples.forEach((sample, at) => {
      if (sample[name] === null) {
        open = false;
        return;
      }
      const x = width - (samples.length - 1 - at) * width / (HISTORY - 1);
      const y = height - 2 - (height - 14) * sample[name] / top;
      if (open) context.lineTo(x, y);
      else context.moveTo(x - 1, y), context.lineTo(x, y);
      open = true;
    });
    context.stroke();
  });
}

// ---- tensors ----

function toHalf(value) {
  const single = new Float32Array([value]);
  const bits = new Uint32Array(single.buffer)[0];
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = Math.abs(single[0]);
  if (Number.isNaN(magnitude)) return sign | 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  if (magnitude < 2 ** -14) return sign | roundEven(magnitude * 2 ** 24);
  const exponent = Math.floor(Math.log2(magnitude));
  // A mantissa that rounds up to 2048 carries into the exponent, as in the format.
  return sign | (((exponent + 14) << 10) + roundEven(magnitude * 2 ** (10 - exponent)));
}

function roundEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2) ? floor + 1 : floor;
}

function fromHalf(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

function toBfloat(value) {
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  if (Number.isNaN(value)) return 0x7fc0;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

function fromBfloat(bits) {
  return new Float32Array(new Uint32Array([bits << 16]).buffer)[0];
}

// How a type is parsed, packed and read. All arrays are little endian, as the protocol and every browser are.
const number = (text) => {
  const special = { NaN: NaN, nan: NaN, Infinity, inf: Infinity, "-Infinity": -Infinity, "-inf": -Infinity };
  const value = text in special ? special[text] : Number(text);
  if (Number.isNaN(value) && !(text in special)) throw new Error(`'${text}' is not a number`);
  return value;
};
const integer = (low, high) => (text) => {
  let value;
  try {
    value = BigInt(text);
  } catch {
    throw new Error(`'${text}' is not an integer`);
  }
  if (value < low || value > high) throw new Error(`${text} is outside of ${low} to ${high}`);
  return value;
};
const small = (bits, signed) => {
  const parse = signed ? integer(-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n) : integer(0n, 2n ** BigInt(bits) - 1n);
  return bits === 64 ? parse : (text) => Number(parse(text));
};
const same = (value) => value;
const types = {
  BOOL: { array: Uint8Array, parse: (t) => ({ true: 1, 1: 1, false: 0, 0: 0 }[t.toLowerCase()] ?? fail(`'${t}' is not true or false`)), pack: same, read: (v) => v !== 0 },
  UINT8: { array: Uint8Array, parse: small(8), pack: same, read: same },
  UINT16: { array: Uint16Array, parse: small(16), pack: same, read: same },
  UINT32: { array: Uint32Array, parse: small(32), pack: same, read: same },
  UINT64: { array: BigUint64Array, parse: small(64), pack: same, read: same },
  INT8: { array: Int8Array, parse: small(8, true), pack: same, read: same },
  INT16: { array: Int16Array, parse: small(16, true), pack: same, read: same },
  INT32: { array: Int32Array, parse: small(32, true), pack: same, read: same },
  INT64: { array: BigInt64Array, parse: small(64, true), pack: same, read: same },
  FP16: { array: Uint16Array, parse: number, pack: toHalf, read: fromHalf, float: true },
  BF16: { array: Uint16Array, parse: number, pack: toBfloat, read: fromBfloat, float: true },
  FP32: { array: Float32Array, parse: number, pack: same, read: same, float: true },
  FP64: { array: Float64Array, parse: number, pack: same, read: same, float: true },
};

function fail(message) {
  throw new Error(message);
}

function packBytes(lines) {
  const parts = lines.map((line) => new TextEncoder().encode(line));
  const out = new Uint8Array(parts.reduce((sum, part) => sum + 4 + part.length, 0));
  const view = new DataView(out.buffer);
  let at = 0;
  for (const part of parts) {
    view.setUint32(at, part.length, true);
    out.set(part, at + 4);
    at += 4 + part.length;
  }
  return out;
}

function readBytes(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const out = [];
  for (let at = 0; at + 4 <= bytes.length;) {
    const length = view.getUint32(at, true);
    out.push(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return out;
}

function packNumbers(type, values) {
  const array = new type.array(values.length);
  for (let i = 0; i < values.length; i++) array[i] = type.pack(values[i]);
  return new Uint8Array(array.buffer);
}

// ---- images ----

// Returns the layout of an image tensor {channels, height, width, first}, or null. `first` says that the channels precede the pixels.
function imageLayout(shape, datatype) {
  if (!types[datatype] || !(types[datatype].float || datatype === "UINT8") || shape.length < 3) return null;
  const [a, b, c] = shape.slice(-3);
  if (![1, 3, 4].includes(a) && ![1, 3, 4].includes(c)) return null;
  const first = [1, 3, 4].includes(a);
  return first ? { first, channels: a, height: b, width: c } : { first, channels: c, height: a, width: b };
}

async function imageValues(file, layout, scaling, type) {
  const bitmap = await createImageBitmap(file);
  const canvas = element("canvas", { width: layout.width, height: layout.height });
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0, layout.width, layout.height);
  const { data } = context.getImageData(0, 0, layout.width, layout.height);
  const mean = [0.485, 0.456, 0.406, 0];
  const deviation = [0.229, 0.224, 0.225, 1];
  const area = layout.width * layout.height;
  const values = new Array(area * layout.channels);
  for (let pixel = 0; pixel < area; pixel++) {
    for (let channel = 0; channel < layout.channels; channel++) {
      let value = layout.channels === 1
        ? 0.299 * data[pixel * 4] + 0.587 * data[pixel * 4 + 1] + 0.114 * data[pixel * 4 + 2]
        : data[pixel * 4 + channel];
      if (scaling !== "raw") value /= 255;
      if (scaling === "imagenet") value = (value - mean[channel]) / deviation[channel];
      if (!type.float) value = Math.round(value);
      values[layout.first ? channel * area + pixel : pixel * layout.channels + channel] = value;
    }
  }
  return values;
}

// ---- the form ----

function inputField(input) {
  const type = types[input.datatype];
  const dims = input.shape.map((dim, i) => element("input", {
    type: "number", className: "dim", min: 0, value: dim < 0 ? 1 : dim, readOnly: dim >= 0, ariaLabel: `dimension ${i} of ${input.name}`,
  }));
  const text = element("textarea", { spellcheck: false, ariaLabel: `values of ${input.name}` });
  const field = { input, dims, text, values: null };
  const shape = () => dims.map((dim) => Math.max(0, Math.floor(Number(dim.value) || 0)));
  field.shape = shape;
  const count = () => shape().reduce((product, dim) => product * dim, 1);
  field.count = count;
  const fill = (label, value) => {
    const button = element("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      field.values = null;
      if (count() > 100000) return setNote(field, `${count()} elements are too many for the text field`);
      text.value = Array.from({ length: count() }, value).join(type ? ", " : "\n");
      setNote(field, "");
    });
    return button;
  };
  const random = type?.float ? () => Number((Math.random() * 2 - 1).toPrecision(4)) : () => Math.floor(Math.random() * 2);
  const tools = element("div", { className: "row" });
  if (type) tools.append(fill("zeros", () => 0), fill("random", random));
  field.note = element("span", { className: "hint" }, type ? "numbers, separated by commas or spaces" : "one element per line");
  const layout = imageLayout(input.shape.map((dim) => (dim < 0 ? 224 : dim)), input.datatype);
  if (layout) tools.append(...imageTools(field, shape));
  tools.append(field.note);
  text.addEventListener("input", () => {
    field.values = null;
    setNote(field, "");
  });
  field.node = element("fieldset", {}, element("legend", {}, `${input.name} (${input.datatype})`),
    element("div", { className: "row" }, "shape", ...dims), text, tools);
  return field;
}

function setNote(field, text) {
  field.note.textContent = text;
}

function imageTools(field, shape) {
  const file = element("input", { type: "file", accept: "image/*", ariaLabel: `image for ${field.input.name}` });
  const scaling = element("select", { ariaLabel: "scaling of the image" });
  for (const [value, label] of [["unit", "0 to 1"], ["raw", "0 to 255"], ["imagenet", "ImageNet mean"]])
    scaling.append(element("option", { value }, label));
  if (field.input.datatype === "UINT8") scaling.value = "raw";
  const read = async () => {
    const [image] = file.files;
    const layout = imageLayout(shape(), field.input.datatype);
    if (!image || !layout) return;
    try {
      field.values = await imageValues(image, layout, scaling.value, types[field.input.datatype]);
      field.text.value = "";
      setNote(field, `${image.name}, resized to ${layout.width} × ${layout.height}`);
    } catch (error) {
      setNote(field, `${image.name} cannot be read: ${error.message}`);
    }
  };
  file.addEventListener("change", read);
  scaling.addEventListener("change", read);
  for (const dim of field.dims) dim.addEventListener("change", read);
  return [file, scaling];
}

// Returns the elements of a field.
function fieldValues(field) {
  const { datatype, name } = field.input;
  const count = field.count();
  if (count > MAX_ELEMENTS) throw new Error(`input '${name}': ${count} elements are too many for this page`);
  let { values } = field;
  if (!values && !types[datatype]) {
    values = count === 1 ? [field.text.value] : field.text.value.split("\n");
  } else if (!values) {
    const tokens = field.text.value.split(/[\s,[\]]+/).filter(Boolean);
    values = tokens.map((token) => {
      try {
        return types[datatype].parse(token);
      } catch (error) {
        throw new Error(`input '${name}': ${error.message}`);
      }
    });
  }
  if (values.length !== count)
    throw new Error(`input '${name}': shape [${field.shape().join(", ")}] has ${count} elements, found ${values.length}`);
  return values;
}

let fields = [];

function requestOf(metadata) {
  const inputs = [];
  const parts = [];
  const plain = [];
  let total = 0;
  for (const field of fields) {
    const { name, datatype } = field.input;
    const values = fieldValues(field);
    const bytes = types[datatype] ? packNumbers(types[datatype], values) : packBytes(values);
    const shape = field.shape();
    inputs.push({ name, datatype, shape, parameters: { binary_data_size: bytes.length } });
    plain.push({ name, datatype, shape, data: values });
    parts.push(bytes);
    total += values.length;
  }
  const outputs = metadata.outputs.map(({ name }) => ({ name, parameters: { binary_data: true } }));
  const header = new TextEncoder().encode(JSON.stringify({ inputs, outputs }));
  return { body: new Blob([header, ...parts]), headerLength: header.length, plain, total };
}

// Shows the request as a command of curl, if it is short and its types exist in JSON.
function showCommand(model, request) {
  const node = $("command");
  const half = request.plain.some(({ datatype }) => datatype === "FP16" || datatype === "BF16");
  node.hidden = half || request.total > COMMAND_VALUES;
  if (node.hidden) return;
  const json = JSON.stringify({ inputs: request.plain }, (key, value) => (typeof value === "bigint" ? Number(value) : value));
  const quoted = `'${json.replaceAll("'", "'\\''")}'`;
  node.querySelector("pre").textContent = `curl -X POST '${location.origin}${modelPath(model)}/infer' -d ${quoted}`;
}

async function infer(event) {
  event.preventDefault();
  const model = models.get(selected);
  const submit = $("form").querySelector("[type=submit]");
  if (!model || submit.disabled) return;
  show($("infer-error"), "");
  $("elapsed").textContent = "";
  submit.disabled = true;
  try {
    const request = requestOf(model.metadata);
    showCommand(model, request);
    const start = performance.now();
    const response = await call(`${modelPath(model)}/infer`, {
      method: "POST",
      body: request.body,
      headers: { "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": String(request.headerLength) },
    });
    const body = new Uint8Array(await response.arrayBuffer());
    $("elapsed").textContent = formatMs(performance.now() - start);
    const length = Number(response.headers.get("Inference-Header-Content-Length") ?? body.length);
    showOutputs(JSON.parse(new TextDecoder().decode(body.subarray(0, length))), body.subarray(length));
  } catch (error) {
    show($("infer-error"), error.message);
  }
  submit.disabled = false;
}

function outputValues(output, binary, at) {
  const size = output.parameters?.binary_data_size;
  if (size === undefined) return (output.data ?? []).flat(Infinity);
  const bytes = binary.slice(at, at + size); // a copy, which is aligned
  const type = types[output.datatype];
  if (!type) return readBytes(bytes);
  return Array.from(new type.array(bytes.buffer), type.read);
}

function topTable(values) {
  const order = values.map((value, i) => [value, i]).sort((a, b) => b[0] - a[0]).slice(0, 5);
  const head = element("tr", {}, element("th", {}, "Index"), element("th", { className: "number" }, "Value"));
  const rows = order.map(([value, i]) => element("tr", {}, element("td", {}, String(i)),
    element("td", { className: "number" }, Number(value.toPrecision(5)).toString())));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

function showOutputs(response, binary) {
  const nodes = [];
  let at = 0;
  for (const output of response.outputs ?? []) {
    const values = outputValues(output, binary, at);
    at += output.parameters?.binary_data_size ?? 0;
    nodes.push(element("h4", {}, `${output.name} (${output.datatype} [${output.shape.join(", ")}])`));
    const scores = output.shape[output.shape.length - 1];
    if (types[output.datatype]?.float && scores > 5 && values.length === scores) nodes.push(topTable(values));
    const format = (value) => (types[output.datatype]?.float ? Number(value.toPrecision(7)) : value);
    const shown = values.slice(0, SHOWN_VALUES).map(format).join(types[output.datatype] ? ", " : "\n");
    nodes.push(element("pre", {}, values.length > SHOWN_VALUES ? `${shown}, … (${values.length} values)` : shown));
  }
  $("outputs").replaceChildren(...(nodes.length ? nodes : [element("p", { className: "hint" }, "The response has no outputs.")]));
}

async function select(key) {
  selected = key;
  const model = models.get(key);
  $("model-title").textContent = `${model.name}, version ${model.version}`;
  for (const id of ["infer-error", "elapsed"]) show($(id), "");
  $("elapsed").hidden = false;
  $("command").hidden = true;
  $("inputs").replaceChildren();
  fields = [];
  $("outputs").replaceChildren(element("p", { className: "hint" }, "No request was sent."));
  draw();
  try {
    const [metadata, config] = await Promise.all([getJson(modelPath(model)), getJson(`${modelPath(model)}/config`)]);
    if (selected !== key) return;
    model.metadata = metadata;
    fields = metadata.inputs.map(inputField);
    $("inputs").replaceChildren(...fields.map((field) => field.node));
    $("config").textContent = JSON.stringify(config, null, 2);
    $("form").querySelector("[type=submit]").disabled = false;
    location.replace("#" + encodeURIComponent(key));
  } catch (error) {
    show($("infer-error"), error.message);
  }
}

async function start() {
  $("form").addEventListener("submit", infer);
  $("token").addEventListener("change", load);
  window.addEventListener("resize", draw);
  document.addEventListener("visibilitychange", () => document.hidden || poll());
  await load();
}

// Reads everything again, at the start and with another token.
async function load() {
  try {
    const server = await getJson("/v2");
    $("version").textContent = `${server.name} ${server.version}`;
    document.title = `${server.name} – Kelp`;
  } catch (error) {
    show($("error"), `The server cannot be read: ${error.message}`);
  }
  await poll();
  let wanted = decodeURIComponent(location.hash.slice(1));
  if (!models.has(wanted)) wanted = [...models.values()].find((model) => model.state === "READY")?.key;
  if (wanted && models.get(wanted).state === "READY") await select(wanted);
}

start();
