// M of a robot by the kernels as WebAssembly: node tests/wasm.mjs MODULE < numbers; see backends/test_wasm.py.
import fs from "node:fs";

const { context, integers, reals, q } = JSON.parse(fs.readFileSync(0, "utf8"));
const wasi = new Proxy({}, { get: () => () => 0 });
const { instance } = await WebAssembly.instantiate(fs.readFileSync(process.argv[2]), { wasi_snapshot_preview1: wasi });
const kernels = instance.exports;
kernels._initialize();

// Memory is a number of bytes from the start; it may move when it grows.
const words = (at, n) => new Int32Array(kernels.memory.buffer, at, n);
const numbers = (at, n) => new Float64Array(kernels.memory.buffer, at, n);
function kept(values, view, size) {
  const at = kernels.malloc(Math.max(1, values.length) * size);
  view(at, values.length).set(values);
  return at;
}

const at = {};
for (const [name, values] of Object.entries(integers)) at[name] = kept(values, words, 4);
for (const [name, values] of Object.entries(reals)) at[name] = kept(values, numbers, 8);
const filled = kept(context.map((field) => (typeof field === "string" ? at[field] : field)), words, 4);
const out = kernels.malloc(8 * q.length ** 2);
const arrays = kept([kept(q, numbers, 8), out], words, 4);
const scratch = kernels.malloc(kernels.screwdyn_scratch_mass_matrix(filled));
const status = kernels.screwdyn_run_mass_matrix(filled, arrays, scratch);
console.log(JSON.stringify({ status, M: [...numbers(out, q.length ** 2)] }));
