// A story of the laboratory in Node: node tests/wasm.mjs MODULE < data prints what it saw; see backends/test_wasm.py.
import fs from "node:fs";
import { Kernels, Load, Swing } from "../docs/lab/lab.mjs";

const data = JSON.parse(fs.readFileSync(0, "utf8"));
const kernels = await Kernels.load(fs.readFileSync(process.argv[2]));
const swing = new Swing(data, kernels), states = [], changes = [];

async function seen() {
  const { robot, q, qd, t } = swing, tau = swing.torque(), links = robot.links.map((link) => link.name);
  const [sines, cosines] = kernels.sines(q);
  const given = { t, q, qd, tau, sines, cosines, python: swing.lines(), digests: await swing.digests(), rows: robot.rows };
  const of = Object.fromEntries(links.map((link) => [link, robot.contribution(link, q, qd)]));
  const tip = robot.poses(q)[robot.hand].filter((_, k) => k % 4 === 3).slice(0, 3);
  return { ...given, tip, of, qdd: robot.accelerations(q, qd, tau), ...robot.energies(q, qd), unaccounted: swing.unaccounted };
}

async function run(steps, every = 20) {
  for (let k = 0; k < steps; k++) {
    swing.step(0.002);
    if (k % every === 0) states.push(await seen());
  }
}

async function change(name, ...given) {
  const before = await seen(), lost = swing[name](...given) ?? 0;
  changes.push({ name, before, after: await seen(), lost, home: swing.home });
}

const crate = new Load("crate", 2.9, [0.3, 0.2, 0.2], [0, 0, 0.3]), plank = new Load("plank", 2.3, [0.7, 0.12, 0.05], [0, 0, 0.25]);
swing.target[0] += 1;
swing.target[2] -= 0.4;
await run(200);
await change("hang", crate, "hook", true);
await run(300);
await change("weld");
await run(100);
await change("unweld");
swing.motors = "carry";
await run(100);
await change("drop");
await change("hang", crate, "ball", true);
await run(300);
await change("weld");
await change("unweld");
await change("drop");
await change("hang", plank, "pin", false);
swing.motors = "off";
const { q, qd } = await seen();
await run(200);
const free = { q, qd }, swung = states.length;
swing.motors = "hold";
await change("close");
await run(300);
await change("drop");
await change("hang", crate, "hook", true);
await run(200);
const held = states.splice(swung), gap = held.map((seen) => seen.tip.map((x, k) => x - swing.anchor[k]));

// Pushes of a free arm, and rates that are too large.
const left = [];
swing.reset();
swing.motors = "off";
swing.hang(new Load("crate", 8, [0.3, 0.2, 0.2], [0, 0, 0.3]), "ball", true);
for (const rate of [30, -60, 90]) {
  swing.qd.fill(rate);
  swing.open();
  for (let k = 0; k < 50; k++) swing.step(0.002);
  left.push(swing.unaccounted / swing.robot.energies(swing.q, swing.qd).kinetic);
}
swing.qd.fill(1e5);
const state = [swing.q, swing.qd, swing.load], fast = { left };
try {
  swing.step(0.002);
} catch ({ message }) {
  Object.assign(fast, { message, kept: [swing.q, swing.qd, swing.load].every((x, k) => x === state[k]) });
}
console.log(JSON.stringify({ states, changes: changes.slice(0, -3), free, held, gap, closing: changes.slice(-3), fast }));
