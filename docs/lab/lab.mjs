// The laboratory: a robot that is changed while it moves, computed by the kernels of screwdyn.
//
// Kernels: the C functions as WebAssembly. Robot: the rows of their table, and the laws that need several kernels.
// Swing: a motion with its energies. View: the picture. What follows them is the page. Names, units and formulas are
// those of docs/mathematics.md; columns of rows and places those of screwdyn/physics/table.py.

const BODY = 14, PARENT = 24, FIRST = 25, PLACE = 25, BODY_FRAME = 1;
const NOTHING = Array(10).fill(0);
const STILL = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
const AREA = 1 << 18; // bytes for the arrays of one call
const ERROR = 1e-8, LEAST = 1 / 256; // of the energy, relative, in a step; the least part of a step

const zeros = (n) => Array(n).fill(0);
const range = (n) => [...Array(n).keys()];
const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);
const added = (a, b, s = 1) => a.map((x, k) => x + s * b[k]);
const rotated = (R, v) => [0, 3, 6].map((k) => R[k] * v[0] + R[k + 1] * v[1] + R[k + 2] * v[2]);
const transposed = (R) => [0, 3, 6, 1, 4, 7, 2, 5, 8].map((k) => R[k]);
const multiplied = (A, B) => {
  const columns = [0, 1, 2].map((k) => rotated(A, [B[k], B[k + 3], B[k + 6]]));
  return [0, 1, 2].flatMap((k) => columns.map((column) => column[k]));
};
const crossed = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const split = (T) => [[0, 1, 2, 4, 5, 6, 8, 9, 10].map((k) => T[k]), [T[3], T[7], T[11]]]; // of 16 numbers: R, p
const joined = (R, p) => [...R.slice(0, 3), p[0], ...R.slice(3, 6), p[1], ...R.slice(6), p[2], 0, 0, 0, 1];

export class Kernels {
  static async load(bytes) {
    const { instance } = await WebAssembly.instantiate(bytes);
    instance.exports._initialize();
    return new Kernels(instance.exports);
  }

  constructor(code) {
    this.code = code;
    this.area = code.malloc(AREA);
    this.memory = code.memory.buffer;
  }

  // Writes an array into the area of the call; returns its address.
  kept(values, Type = Float64Array) {
    const at = this.end;
    new Type(this.memory, at, values.length).set(values);
    this.end += 8 * Math.ceil((values.length * Type.BYTES_PER_ELEMENT) / 8);
    return at;
  }

  room(sizes) {
    return sizes.map((size) => this.kept(new Float64Array(size)));
  }

  read(addresses, sizes) {
    return sizes.map((size, k) => [...new Float64Array(this.memory, addresses[k], size)]);
  }

  // The results, of some sizes, of a kernel for a robot and the arrays of a state; see struct screwdyn_context.
  run(name, robot, given, sizes, places = [], path = 0) {
    this.end = this.area;
    const { n, ball, terms, flat } = robot, table = this.kept(flat.table), of = this.kept(places.flat());
    const parents = this.kept(flat.parents, Int32Array), firsts = this.kept(flat.firsts, Int32Array);
    const [where, balls] = [flat.where, [ball, ball, 4, 0]].map((values) => this.kept(values, Int32Array));
    const charts = [where, balls, this.kept(flat.terms)];
    const counts = [1, n, robot.nq, places.length, path, 0, Number(ball >= 0), terms.length];
    const moved = ball < 0 ? table : this.kept(flat.table), lists = [...charts, moved, of, parents, firsts];
    const context = this.kept([...counts, table, ...lists, 0, 0, 0, 0, 0, 10 * places.length], Int32Array);
    const arrays = given.map((values) => this.kept(values)), results = this.room(sizes);
    const addresses = this.kept([...arrays, ...results], Int32Array);
    const end = this.end + this.code[`screwdyn_scratch_${name}`](context);
    if (end > this.area + AREA) throw new Error(`${name} has no room`);
    const status = this.code[`screwdyn_run_${name}`](context, addresses, this.end);
    if (status) throw new Error(`${name} returns ${status}`);
    return this.read(results, sizes);
  }

  // The results of a function of numbers: "weld" and "mount" of screwdyn/physics/placement.py.
  numbers(name, given, size) {
    this.end = this.area;
    const at = this.kept(given), [result] = this.room([size]);
    this.code[`screwdyn_${name}`](0, this.kept([at, result], Int32Array), 0);
    return this.read([result], [size])[0];
  }

  // The sine and cosine of angles as the kernels have them.
  sines(angles) {
    this.end = this.area;
    const n = angles.length, code = this.kept([4, 1, 0, 0, 5, 2, 0, 0], Int32Array);
    const [of, ...results] = [this.kept(angles), ...this.room([n, n])];
    this.code.screwdyn_play(this.kept([2, n], Int32Array), this.kept([code, of], Int32Array), 0);
    return this.read(results, [n, n]);
  }
}

// A box of uniform density whose centre hangs at com below the hook: as Inertia.box(mass, size, com).
export class Load {
  constructor(name, mass, size, com) {
    const squares = size.map((edge) => edge * edge), sum = squares[0] + squares[1] + squares[2];
    const [x, y, z] = squares.map((square) => (mass * (sum - square)) / 12);
    Object.assign(this, { name, mass, size, com, moments: [x, 0, 0, y, 0, z] });
  }
}

export class Robot {
  // The rows, of which those from ``ball`` on, if it is not −1, are of a ball joint: its positions are a quaternion.
  // ``loop``: the constraints of a closed loop, or none; a robot with a load shares those of the robot without it.
  constructor(kernels, { rows, base, links, coordinates, hand, loop = [] }, ball = -1, terms = []) {
    Object.assign(this, { kernels, rows, base, links, coordinates, hand, loop, ball, terms, n: rows.length });
    this.nq = this.n + Number(ball >= 0);
    const all = [...rows, base], where = range(this.n).map((k) => (ball < 0 || k < ball ? k : -1));
    const [parents, firsts] = [rows.map((row) => row[PARENT]), all.map((row) => row[FIRST])];
    this.flat = { table: Float64Array.from(all.flat()), terms: terms.flat(), where, parents, firsts }; // for each call
  }

  place(name) {
    return this.links.find((link) => link.name === name).place;
  }

  // This robot with a load on its hand: with the rows of the load's joint, or with the load as a part of a row.
  carrying(load, joint, home = STILL) {
    const rows = this.rows.map((row) => [...row]), inertia = [load.mass, ...load.com, ...load.moments];
    const { n } = this, ball = joint.terms.length ? n : -1;
    const [carrier, , ...rest] = this.place(this.hand), hand = rest.slice(0, 12), count = joint.rows.length;
    let pose, row = carrier;
    if (count) {
      const first = this.kernels.numbers("mount", [...hand, ...home, ...joint.rows[0].slice(0, 12)], 12);
      pose = joint.link;
      const body = this.kernels.numbers("weld", [...pose, ...STILL, ...inertia], 22).slice(12);
      for (const [k, own] of joint.rows.entries()) {
        const start = k ? own : [...first, ...own.slice(12)];
        rows.push([...start, ...(k === count - 1 ? body : NOTHING), row, ball < 0 ? rows.length : ball, 0]);
        row = rows.length - 1;
      }
    } else {
      const found = this.kernels.numbers("weld", [...hand, ...home, ...inertia], 22);
      pose = found.slice(0, 12);
      found.slice(12).forEach((x, k) => (rows[row][BODY + k] += x));
    }
    const com = added(pose.slice(9), rotated(pose.slice(0, 9), load.com));
    const place = [row, BODY_FRAME, ...pose, ...com, load.mass, ...load.moments, count];
    const links = [...this.links, { name: load.name, place }];
    const terms = joint.terms.map(([m, k, l, c]) => [m + n, k + n, l + n, c]);
    const robot = new Robot(this.kernels, { ...this, rows, links }, ball, terms);
    robot.coordinates = [...this.coordinates, ...joint.names];
    return robot;
  }

  // The rows on the path to a link, in order.
  path(name) {
    const found = [];
    for (let row = this.place(name)[0]; row >= 0; row = this.rows[row][PARENT]) found.unshift(row);
    return found;
  }

  dynamics(q, qd) {
    const n = this.n, [M, C, g] = this.kernels.run("dynamics", this, [q, qd], [n * n, n * n, n]);
    return { M, C, g };
  }

  contribution(name, q, qd) {
    const path = this.path(name), k = path.length, sizes = [6 * k, 6 * k, k * k, k * k, k];
    const found = this.kernels.run("contribution", this, [q, qd], sizes, [this.place(name)], k);
    const [J, J_dot, M, C, g] = found;
    return { path, J, J_dot, M, C, g };
  }

  poses(q) {
    const places = this.links.map((link) => link.place);
    const [all] = this.kernels.run("link_poses", this, [q], [16 * places.length], places);
    return Object.fromEntries(this.links.map((link, k) => [link.name, all.slice(16 * k, 16 * k + 16)]));
  }

  // [ω; v] of a link in its own frame.
  twist(name, q, qd) {
    return this.kernels.run("link_twist", this, [q, qd], [6], [this.place(name)], this.path(name).length)[0];
  }

  energies(q, qd) {
    const [[kinetic]] = this.kernels.run("kinetic_energy", this, [q, qd], [1]);
    const [[potential]] = this.kernels.run("potential_energy", this, [q], [1]);
    return { kinetic, potential };
  }

  accelerations(q, qd, tau) {
    const name = this.loop.length ? "constrained_dynamics" : "forward_dynamics";
    return this.kernels.run(name, this, [q, qd, tau], [this.n], this.loop)[0];
  }

  // The constraints of a ball joint between the hand and the world: forces along the axes of the hand.
  held() {
    const [row, , ...rest] = this.place(this.hand), axes = transposed(rest.slice(0, 9)), at = rest.slice(9, 12);
    const forces = [0, 3, 6].map((k) => axes.slice(k, k + 3));
    return forces.map((force) => [row, -1, ...crossed(at, force), ...force, ...zeros(PLACE - 8)]);
  }

  // J_c v, the rates at which the loop opens.
  opening(q, v) {
    const { n, loop } = this, [J] = this.kernels.run("constraint_jacobian", this, [q], [loop.length * n], loop);
    return loop.map((_, k) => dot(v, J.slice(k * n, k * n + n)));
  }

  // The least rates, in the metric of M, that open the loop so.
  closing(q, opening) {
    return this.kernels.run("closing", this, [q, opening], [this.n, opening.length], this.loop)[0];
  }

  // dq/dt: the rates, but half the product of a ball's quaternion and (ω, 0).
  positionRate(q, v) {
    if (this.ball < 0) return v;
    const k = this.ball, axis = q.slice(k, k + 3), u = v.slice(k);
    const turn = added(crossed(axis, u), u, q[k + 3]);
    return [...v.slice(0, k), ...turn.map((x) => x / 2), -dot(axis, u) / 2];
  }

  // The positions with a quaternion of length 1.
  unit(q) {
    if (this.ball < 0) return q;
    const length = Math.hypot(...q.slice(this.ball));
    return q.map((x, k) => (k < this.ball ? x : x / length));
  }

  // The law of all changes (docs/mathematics.md §6), for a load that has just become a part of this robot: the rates
  // after it, and the energy that is lost and that the load brings. Just before, the load has a twist in its own frame.
  struck(load, q, qd, twist) {
    const place = this.place(load.name), row = place[0], own = this.rows[row].slice(BODY, BODY + 10);
    const body = place.at(-1) ? own : this.kernels.numbers("weld", this.asWelded(load), 22).slice(12);
    const part = [row, ...body, ...added(own, body, -1), ...zeros(4)];
    const slip = [...place.slice(2, 14), ...added(twist, this.twist(load.name, q, qd), -1)];
    const run = (kernel, rates) => this.kernels.run(kernel, this, [q, rates, slip], [this.n, 6, 3], [part]);
    let change = zeros(this.n), energies;
    for (let k = 0; k < 8 && !(energies && energies[2] === 0); k++) [change, , energies] = run("impact", change);
    const [, , [brought]] = run("slip_momentum", qd.map((x) => -x));
    return { qd: added(qd, change), lost: energies[1], brought };
  }

  // What "weld" takes to give the body of a load that is welded to a row.
  asWelded(load) {
    return [...this.place(load.name).slice(2, 14), ...STILL, load.mass, ...load.com, ...load.moments];
  }
}

// A robot in motion, its load, and the ledger of its energies, J.
export class Swing {
  constructor(data, kernels) {
    this.bare = new Robot(kernels, data);
    Object.assign(this, { python: data.python, joints: data.joints, motors: "hold", start: data.q });
    this.reset();
  }

  reset() {
    Object.assign(this, { robot: this.bare, load: null, joint: null, flying: null, anchor: null, t: 0, share: 1 });
    this.bare.loop.length = 0;
    [this.q, this.qd, this.target] = [[...this.start], zeros(this.bare.n), [...this.start]];
    this.open();
  }

  // Opens the ledger anew.
  open() {
    this.ledger = { start: this.energy(), work: 0, lost: 0, exchanged: 0 };
  }

  energy() {
    const { kinetic, potential } = this.robot.energies(this.q, this.qd);
    return kinetic + potential;
  }

  get unaccounted() {
    const { start, work, lost, exchanged } = this.ledger;
    return this.energy() - start - work + lost - exchanged;
  }

  // Forces of the motors: none, those that hold the weight, or those that also lead the arm to the target.
  torque() {
    const active = this.bare.n, tau = zeros(this.robot.n);
    if (this.motors === "off") return tau;
    const { M, g } = this.robot.dynamics(this.q, this.qd), pull = this.motors === "hold" ? 6 : 0;
    const wanted = range(active).map((k) => pull * (pull * (this.target[k] - this.q[k]) - 2 * this.qd[k]));
    for (let k = 0; k < active; k++) tau[k] = g[k] + dot(wanted, M.slice(k * this.robot.n, k * this.robot.n + active));
    return tau;
  }

  // Moves on by dt, in which the forces of the motors are constant, in parts so small that they keep the energy.
  step(dt) {
    const tau = this.torque();
    for (let done = 0, had = this.energy(); done < 1; ) {
      const { q, qd, share } = this, work = this.move(share * dt, tau);
      const { kinetic, potential } = this.robot.energies(this.q, this.qd), has = kinetic + potential;
      const error = Math.abs(has - had - work) / (1 + kinetic) / share;
      if (error < ERROR) {
        [done, had] = [done + share, has];
        this.ledger.work += work;
        if (error < ERROR / 100 && share < 1 && done % (2 * share) === 0) this.share = 2 * share;
      } else {
        Object.assign(this, { q, qd, share: Math.max(share / 2, LEAST) });
        if (share === LEAST) throw new Error(this.tooFast());
      }
    }
    this.t += dt;
    if (this.flying) this.fly(dt);
  }

  // One step of the method of Runge and Kutta. Returns the work of the forces.
  move(dt, tau) {
    const { robot, q, qd } = this, stages = [];
    for (const part of [0, dt / 2, dt / 2, dt]) {
      const [rate, a] = stages.at(-1) ?? [zeros(robot.nq), zeros(robot.n)];
      const x = robot.unit(added(q, rate, part)), v = added(qd, a, part);
      stages.push([robot.positionRate(x, v), robot.accelerations(x, v, tau)]);
    }
    const mean = ([a, b, c, d]) => a.map((x, k) => (dt / 6) * (x + 2 * b[k] + 2 * c[k] + d[k]));
    const [moved, changed] = [0, 1].map((k) => mean(stages.map((stage) => stage[k])));
    [this.q, this.qd] = [robot.unit(added(q, moved)), added(qd, changed)];
    this.settle();
    return dot(tau, moved);
  }

  tooFast() {
    const sizes = this.qd.map(Math.abs), rate = Math.max(...sizes), name = this.robot.coordinates[sizes.indexOf(rate)];
    return `${name} turns at ${rate.toFixed(0)} rad/s, too fast for this page to compute`;
  }

  // The positions of a joint at which a load hangs straight down: its com is on z of the hand.
  hanging(joint) {
    const [R] = split(this.robot.poses(this.q)[this.bare.hand]), [x, y, z] = [-R[6], -R[7], -R[8]];
    if (joint.terms.length) {
      const length = Math.sqrt(Math.max(0, 2 + 2 * z)); // the shortest turn from z of the hand to the vertical
      return length > 1e-6 ? [-y / length, x / length, 0, length / 2] : [1, 0, 0, 0];
    }
    const first = Math.atan2(-y, z);
    return [first, Math.asin(Math.max(-1, Math.min(1, x)))].slice(0, joint.rows.length);
  }

  // Lets the hand grasp a load, which is at rest or moves with it just before. Returns the energy lost.
  hang(load, kind, atRest) {
    const joint = this.joints[kind], robot = this.bare.carrying(load, joint);
    const former = this.robot.energies(this.q, this.qd);
    const q = [...this.q, ...this.hanging(joint)], qd = [...this.qd, ...zeros(joint.rows.length)];
    const after = robot.struck(load, q, qd, atRest ? zeros(6) : robot.twist(load.name, q, qd));
    Object.assign(this, { robot, load, joint: kind, q, qd: after.qd });
    this.ledger.exchanged += robot.energies(q, qd).potential - former.potential + after.brought;
    return this.booked(after.lost);
  }

  // Makes the load a part of the hand where it is. Returns the energy lost.
  weld() {
    const [q, qd] = [this.q, this.qd].map((x) => x.slice(0, this.bare.n)), poses = this.robot.poses(this.q);
    const [[R, p], [D, d]] = [poses[this.bare.hand], poses[this.load.name]].map(split), back = transposed(R);
    this.home = joined(multiplied(back, D), rotated(back, added(d, p, -1)));
    this.angles = this.q.slice(this.bare.n);
    const robot = this.bare.carrying(this.load, this.joints.weld, this.home);
    const after = robot.struck(this.load, q, qd, this.robot.twist(this.load.name, this.q, this.qd));
    Object.assign(this, { robot, q, qd: after.qd, was: this.joint, joint: "weld" });
    return this.booked(after.lost);
  }

  // Closes a loop: a ball joint between the hand and the world, where the hand is. Returns the energy lost.
  close() {
    const { robot } = this;
    [, this.anchor] = split(robot.poses(this.q)[robot.hand]);
    robot.loop.push(...robot.held());
    this.target = this.q.slice(0, this.bare.n);
    return this.booked(0);
  }

  // Opens it again.
  part() {
    this.robot.loop.length = 0;
    this.anchor = null;
  }

  // Books an impact. A loop takes part in it: what it takes from the rates without it is nearest in the same metric.
  booked(lost) {
    const all = lost + this.settle();
    this.ledger.lost += all;
    return all;
  }

  // Moves to the nearest state in which the loop is closed. Returns the energy that the rates lose.
  settle() {
    const { robot, anchor } = this;
    if (!anchor) return 0;
    for (let k = 0; k < 20; k++) {
      const [R, p] = split(robot.poses(this.q)[robot.hand]), gap = rotated(transposed(R), added(p, anchor, -1));
      if (Math.hypot(...gap) < 1e-13) break;
      this.q = robot.unit(added(this.q, robot.positionRate(this.q, robot.closing(this.q, gap)), -1));
    }
    const change = robot.closing(this.q, robot.opening(this.q, this.qd)), before = this.qd;
    this.qd = added(before, change, -1);
    return robot.energies(this.q, before).kinetic - robot.energies(this.q, this.qd).kinetic;
  }

  // Frees the hook again, which starts at rest where it was.
  unweld() {
    const robot = this.bare.carrying(this.load, this.joints[this.was]);
    const q = [...this.q, ...this.angles], qd = [...this.qd, ...zeros(robot.n - this.bare.n)];
    Object.assign(this, { robot, q, qd, joint: this.was });
  }

  // Lets the load go, which keeps its twist.
  drop() {
    const { robot, load } = this, [R, p] = split(robot.poses(this.q)[load.name]);
    const V = robot.twist(load.name, this.q, this.qd), w = V.slice(0, 3), com = added(p, rotated(R, load.com));
    const v = rotated(R, added(V.slice(3), crossed(w, load.com)));
    const before = this.energy(), [q, qd] = [this.q, this.qd].map((x) => x.slice(0, this.bare.n));
    Object.assign(this, { flying: { load, R, com, v, w }, robot: this.bare, load: null, joint: null, q, qd });
    this.ledger.exchanged += this.energy() - before;
  }

  // A free body: a parabola, and Euler's equations by the midpoint; for the picture only.
  fly(dt) {
    const body = this.flying, gravity = this.bare.base.slice(0, 3), I = [0, 3, 5].map((k) => body.load.moments[k]);
    const rate = (w) => crossed(w.map((x, k) => I[k] * x), w).map((x, k) => x / I[k]);
    const w = added(body.w, rate(body.w), dt / 2), angle = Math.hypot(...w) * dt;
    const [a, b, c] = w.map((x) => (angle ? (x * dt) / angle : 0)), s = Math.sin(angle), k = 1 - Math.cos(angle);
    const turn = [
      1 - k * (b * b + c * c), k * a * b - s * c, k * a * c + s * b,
      k * a * b + s * c, 1 - k * (a * a + c * c), k * b * c - s * a,
      k * a * c - s * b, k * b * c + s * a, 1 - k * (a * a + b * b),
    ];
    body.com = added(added(body.com, body.v, dt), gravity, (dt * dt) / 2);
    Object.assign(body, { v: added(body.v, gravity, dt), w: added(body.w, rate(w), dt), R: multiplied(body.R, turn) });
    if (body.com[2] < -2) this.flying = null;
  }

  // Python that makes this robot in this state, and prints the digests of M, C and g.
  lines() {
    const list = (x) => `[${x.join(", ")}]`, lines = ["import hashlib", "", "import screwdyn as sd", ""];
    lines.push(`arm = ${this.python}`);
    if (this.load) {
      const { name, mass, size, com } = this.load, joint = this.joints[this.joint];
      lines.push(`load = sd.Inertia.box(${mass}, size=(${size.join(", ")}), com=(${com.join(", ")}))`);
      const how = joint.rows.length
        ? `joint=${joint.python}`
        : `at=[${[0, 4, 8, 12].map((k) => list(this.home.slice(k, k + 4))).join(", ")}]`;
      lines.push(`arm.attach(load, to="${this.bare.hand}", ${how}, name="${name}")`);
    }
    if (this.anchor) {
      const pose = this.robot.poses(this.q)[this.bare.hand], at = [0, 4, 8, 12].map((k) => list(pose.slice(k, k + 4)));
      const ends = `"${this.bare.hand}", to="${this.bare.links[0].name}"`;
      lines.push(`arm.close(${ends}, joint=sd.spherical(), at=[${at.join(", ")}], name="loop")`);
    }
    lines.push(`q = ${list(this.q)}`, `qd = ${list(this.qd)}`, "for A in arm.dynamics(q, qd):");
    return [...lines, "    print(hashlib.sha256(A + 0.0).hexdigest()[:16])", ""].join("\n");
  }

  async digests() {
    const { M, C, g } = this.robot.dynamics(this.q, this.qd);
    const digest = (A) => crypto.subtle.digest("SHA-256", Float64Array.from(A, (x) => x + 0)); // −0 + 0 is 0
    const hexadecimal = (bytes) => [...bytes].map((x) => x.toString(16).padStart(2, "0")).join("");
    return (await Promise.all([M, C, g].map(digest))).map((found) => hexadecimal(new Uint8Array(found, 0, 8)));
  }
}

// The picture: triangles of the links, each in its pose, their shadows on the ground, and a grid.
class View {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.gl = canvas.getContext("webgl2", { antialias: true });
    if (!this.gl) throw new Error("this browser has no WebGL 2, which the picture needs");
    const { position, target } = data.camera, d = added(position, target, -1), far = Math.hypot(...d);
    Object.assign(this, { target, far: 1.35 * far, yaw: Math.atan2(d[1], d[0]), pitch: Math.asin(d[2] / far) });
    this.program = this.compiled();
    const places = ["see", "pose", "color", "plain"].map((x) => [x, this.gl.getUniformLocation(this.program, x)]);
    this.at = Object.fromEntries(places);
    const meshes = Object.entries(data.surfaces).map(([link, all]) => [link, all.map((x) => this.mesh(x))]);
    this.links = Object.fromEntries(meshes);
    const sides = range(13).map((k) => -1.2 + 0.2 * k);
    const lines = sides.flatMap((x) => [x, -1.2, 0, x, 1.2, 0, -1.2, x, 0, 1.2, x, 0]);
    this.grid = this.mesh({ vertices: lines, faces: range(lines.length / 3) });
    this.loads = new Map();
    this.ball = this.box([0.05, 0.05, 0.05], [0, 0, 0], [0, 0.6, 0.55, 1]);
    this.listen();
  }

  compiled() {
    const gl = this.gl, program = gl.createProgram();
    const parts = [
      [gl.VERTEX_SHADER, `#version 300 es
        in vec3 p; uniform mat4 see, pose; out vec3 where;
        void main() { vec4 x = pose * vec4(p, 1); where = x.xyz; gl_Position = see * x; }`],
      [gl.FRAGMENT_SHADER, `#version 300 es
        precision highp float;
        in vec3 where; uniform vec4 color; uniform bool plain; out vec4 shown;
        void main() {
          vec3 n = normalize(cross(dFdx(where), dFdy(where)));
          float light = plain ? 1.0 : 0.45 + 0.55 * abs(dot(n, normalize(vec3(0.5, -0.35, 0.8))));
          shown = vec4(color.rgb * light, color.a);
        }`],
    ];
    for (const [kind, text] of parts) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text.trim());
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, 0, "p");
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    return program;
  }

  mesh({ vertices, faces, color }) {
    const gl = this.gl, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const keep = (kind, values) => {
      gl.bindBuffer(kind, gl.createBuffer());
      gl.bufferData(kind, values, gl.STATIC_DRAW);
    };
    keep(gl.ARRAY_BUFFER, new Float32Array(vertices));
    keep(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(faces));
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    return { array, count: faces.length, color };
  }

  // A box about a centre.
  box(size, center, color) {
    const vertices = range(8).flatMap((k) => [0, 1, 2].map((i) => center[i] + (((k >> i) & 1) - 0.5) * size[i]));
    const quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
    return this.mesh({ vertices, faces: quads.flatMap(([a, b, c, d]) => [a, b, c, a, c, d]), color });
  }

  // The box of a load about the link's origin, and the rod that it hangs on.
  ofLoad(load) {
    const key = JSON.stringify(load);
    if (!this.loads.has(key)) {
      const rod = this.box([0.012, 0.012, load.com[2]], [0, 0, load.com[2] / 2], [0.5, 0.32, 0.06, 1]);
      this.loads.set(key, [this.box(load.size, load.com, [0.93, 0.6, 0.1, 1]), rod]);
    }
    return this.loads.get(key);
  }

  listen() {
    const turn = (x, y) => {
      this.yaw -= x;
      this.pitch = Math.max(-0.1, Math.min(1.5, this.pitch + y));
    };
    const zoom = (factor) => (this.far = Math.max(0.5, Math.min(6, this.far * factor)));
    const keys = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };
    this.canvas.onpointerdown = (event) => this.canvas.setPointerCapture(event.pointerId);
    this.canvas.onpointermove = (event) => event.buttons && turn(event.movementX / 150, event.movementY / 150);
    this.canvas.onwheel = (event) => {
      zoom(Math.exp(event.deltaY / 800));
      event.preventDefault();
    };
    this.canvas.onkeydown = (event) => {
      if (keys[event.key]) turn(...keys[event.key]);
      else if ("+-=".includes(event.key)) zoom(event.key === "-" ? 1.1 : 0.9);
      else return;
      event.preventDefault();
    };
  }

  // The matrix from the base frame to the screen, row by row.
  camera() {
    const right = [-Math.sin(this.yaw), Math.cos(this.yaw), 0], level = [right[1], -right[0], 0];
    const back = level.map((x) => x * Math.cos(this.pitch)), wide = this.canvas.width / this.canvas.height;
    back[2] = Math.sin(this.pitch);
    const up = crossed(back, right), eye = added(this.target, back, this.far), near = 0.05, end = 30;
    const zoom = Math.min(1, wide * 0.9) / Math.tan(0.35);
    const row = (axis, k) => [...axis, -dot(axis, eye)].map((x) => k * x);
    const depth = row(back, (near + end) / (near - end));
    depth[3] += (2 * near * end) / (near - end);
    return [...row(right, zoom / wide), ...row(up, zoom), ...depth, ...row(back, -1)];
  }

  draw(swing, style) {
    const { gl, canvas, at } = this, scale = globalThis.devicePixelRatio || 1;
    const [back, line] = ["--back", "--line"].map((name) => {
      const text = style.getPropertyValue(name).trim(); // #rrggbb
      return [...[1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16) / 255), 1];
    });
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((x) => Math.round(x * scale));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    gl.viewport(0, 0, width, height);
    gl.clearColor(...back);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.useProgram(this.program);
    gl.uniformMatrix4fv(at.see, true, this.camera());
    const draw = (mesh, pose, color, plain, kind = gl.TRIANGLES) => {
      gl.uniformMatrix4fv(at.pose, true, pose);
      gl.uniform4fv(at.color, color);
      gl.uniform1i(at.plain, plain);
      gl.bindVertexArray(mesh.array);
      gl.drawElements(kind, mesh.count, gl.UNSIGNED_INT, 0);
    };
    draw(this.grid, STILL, line, true, gl.LINES);
    const { load, flying } = swing, things = [];
    for (const [link, pose] of Object.entries(swing.robot.poses(swing.q))) {
      const meshes = load && link === load.name ? this.ofLoad(load) : this.links[link] ?? [];
      things.push(...meshes.map((mesh) => [mesh, pose]));
    }
    if (swing.anchor) things.push([this.ball, joined(split(STILL)[0], swing.anchor)]);
    if (flying) {
      const pose = joined(flying.R, added(flying.com, rotated(flying.R, flying.load.com), -1));
      things.push(...this.ofLoad(flying.load).map((mesh) => [mesh, pose]));
    }
    for (const [mesh, pose] of things) {
      draw(mesh, [...pose.slice(0, 8), 0, 0, 0, 0.001, ...pose.slice(12)], line, true); // the shadow
      draw(mesh, pose, mesh.color, false);
    }
  }
}

// The page.

const LOADS = [["crate", [0.3, 0.2, 0.2], 0.3], ["plank", [0.7, 0.12, 0.05], 0.25], ["ladder", [0.1, 0.04, 0.5], 0.35]];
const STORY = [
  [0, (lab) => lab.act("reset"), "The arm has six coordinates, and M is 6 × 6: the sum of what its links contribute."],
  [3, (lab) => (lab.swing.target[0] += 1.2), "It turns …"],
  [3.4, (lab) => lab.act("hang"), null],
  [9, (lab) => (lab.swing.target[0] -= 1.6), "The hook is passive: its rows of M, C and g are in the equations all the same."],
  [10, (lab) => lab.act("weld"), null],
  [14, (lab) => lab.act("drop"), null],
  [18, () => 0, "Now you: hang a load, move the sliders, weld it, swap it, drop it."],
];
const STEP = 0.002, BUDGET = 14; // of time, s; of a frame for steps, ms
const LARGEST = 100; // rad and rad/s in an address
const FAINT = 0.05; // a matrix of smaller entries, as of an arm at rest, has pale colours
const brief = (x) => (Math.abs(x) < 0.005 ? 0 : x).toFixed(2); // without −0.00
const became = (lost) => (lost < 1e-9 ? "no energy is lost" : `${lost.toPrecision(3)} J become heat`);
const made = (tag, properties) => Object.assign(document.createElement(tag), properties);

class Laboratory {
  constructor(data, kernels) {
    this.swing = new Swing(data, kernels);
    this.element = (id) => document.getElementById(id);
    this.style = getComputedStyle(document.documentElement);
    this.running = true;
    this.past = [];
    this.story = null;
    this.link = "forearm_link";
    this.moved = data.links.filter(({ place }) => place[0] >= 0 && place[17] > 0).map((link) => link.name);
    this.element("version").textContent = data.version;
    for (const [name] of LOADS) this.element("load").append(new Option(name, name));
    for (const id of ["hang", "weld", "swap", "drop", "close", "reset"]) this.element(id).onclick = () => this.chosen(id);
    this.element("show").onclick = () => this.tell();
    this.element("run").onclick = () => this.run(!this.running);
    this.element("same").onclick = () => this.same();
    this.element("motors").onchange = (event) => this.lead(event.target.value);
    this.element("mass").oninput = (event) => (this.element("mass-value").textContent = `${event.target.value} kg`);
    try {
      this.view = new View(this.element("view"), data);
    } catch (error) {
      this.say(`There is no picture: ${error.message}.`);
    }
    this.changed();
    window.onhashchange = () => this.begin(location.hash.slice(1));
    this.begin(location.hash.slice(1));
  }

  // Begins, paused, as an address asks: #q=0,-1.2,…&qd=0.5,…&motors=off&load=plank&joint=pin&mass=2&hang, or a part.
  begin(fragment) {
    const asked = new URLSearchParams(fragment), { swing } = this, fields = ["load", "joint", "motors", "mass"];
    const known = [...fields, "q", "qd", "hang", "close"];
    const refused = [...asked.keys()].filter((name) => !known.includes(name));
    if (!fragment) return;
    this.chosen("reset");
    this.run(false);
    for (const id of fields) {
      const field = this.element(id), former = field.value, text = asked.get(id) ?? former;
      field.value = text; // the field makes another text of one that it does not allow
      if (!field.value || (field.value !== text && Number(field.value) !== Number(text))) {
        refused.push(`${id}=${text}`);
        field.value = former;
      }
      field.dispatchEvent(new Event(id === "mass" ? "input" : "change"));
    }
    for (const which of ["q", "qd"]) {
      const text = asked.get(which) ?? swing[which].join();
      const values = text.split(",").map((x) => Number(x.trim() || NaN));
      if (values.length === swing.bare.n && values.every((x) => Math.abs(x) <= LARGEST)) swing[which] = values;
      else refused.push(`${which}=${text} (it needs ${swing.bare.n} numbers from −${LARGEST} to ${LARGEST})`);
    }
    swing.target = [...swing.q];
    if (this.view) this.view.target = split(swing.robot.poses(swing.q)[swing.bare.hand])[1].map((x) => x / 2);
    swing.open();
    this.say("The arm is in the state that the address asks for. Press “Run”.");
    for (const name of ["hang", "close"]) if (asked.has(name)) this.act(name);
    const news = this.element("news").textContent;
    if (refused.length) this.say(`The page did not take from the address: ${refused.join(", ")}. ${news}`);
    this.show();
  }

  say(text) {
    this.element("news").textContent = text;
  }

  run(running) {
    this.running = running;
    this.element("run").textContent = running ? "Pause" : "Run";
    this.element("run").setAttribute("aria-pressed", running);
  }

  lead(motors) {
    this.swing.motors = this.element("motors").value = motors;
    this.swing.target = this.swing.q.slice(0, 6);
  }

  // What a user does ends the story.
  chosen(name) {
    this.story = null;
    this.act(name);
  }

  tell() {
    this.story = [...STORY];
    this.lead("hold");
    this.run(true);
  }

  act(name) {
    const { swing } = this, M = this.terms(swing.robot), gone = swing.load?.name, select = this.element("load");
    if (name === "reset") {
      swing.reset();
      this.past = [];
      this.say("The arm is at rest.");
    } else if (name === "hang") this.hang(M, "hangs on the hand");
    else if (name === "weld" && swing.joint === "weld") {
      swing.unweld();
      this.say(`The ${gone} swings again, and no energy is lost.`);
    } else if (name === "close" && swing.anchor) {
      swing.part();
      this.say("The hand is free again: the arm keeps its rates, and no energy is lost.");
    } else if (name === "close") {
      const heat = became(swing.close()), { n } = swing.robot;
      this.say(`A ball joint holds the hand where it is: ${heat}, and ${n - 3} of ${n} freedoms are left. ${this.kept(M, "")}`);
    } else if (name === "weld") this.report(swing.weld(), M, "is welded to the hand");
    else if (name === "drop") {
      swing.drop();
      this.say(`The ${gone} flies on, and the arm keeps its rates: no energy is lost. ${this.kept(M)}`);
    } else {
      if (select.value === gone) select.selectedIndex = (select.selectedIndex + 1) % LOADS.length;
      swing.drop();
      this.hang(M, `takes the place of the ${gone}`);
    }
    this.changed();
  }

  hang(M, what) {
    const [name, size, below] = LOADS.find(([name]) => name === this.element("load").value);
    const load = new Load(name, Number(this.element("mass").value), size, [0, 0, below]);
    this.link = name;
    this.report(this.swing.hang(load, this.element("joint").value, this.element("rest").checked), M, what);
  }

  report(lost, M, what) {
    const { load, robot } = this.swing;
    this.say(`The ${load.name} ${what}: ${became(lost)}, and M is ${robot.n} × ${robot.n}. ${this.kept(M)}`);
  }

  // M_i of the links of the arm.
  terms(robot) {
    return this.moved.map((name) => robot.contribution(name, this.swing.q.slice(0, robot.nq), this.swing.qd).M);
  }

  kept(M, which = "other ") {
    const same = this.terms(this.swing.robot).every((A, k) => A.every((x, i) => Object.is(x, M[k][i])));
    return same ? `The M of the ${M.length} ${which}links have the same bits as before.` : "";
  }

  // After a change of the robot: tables, sliders and buttons for its coordinates.
  changed() {
    const { swing } = this, n = swing.robot.n, names = range(n).map((k) => (k < 6 ? `q${k + 1}` : `θ${k - 5}`));
    const rows = { M: names, C: names, g: names, Mi: names, J: ["ωx", "ωy", "ωz", "vx", "vy", "vz"] };
    const tables = Object.entries(rows).map(([id, rows]) => [id, this.table(id, rows, id === "g" ? [""] : names)]);
    this.cells = Object.fromEntries(tables);
    if (!this.names().includes(this.link)) this.link = "forearm_link";
    this.sliders(names);
    this.buttons();
    for (const id of ["weld", "swap", "drop"]) this.element(id).disabled = !swing.load;
    this.element("hang").disabled = Boolean(swing.load);
    this.element("weld").textContent = swing.joint === "weld" ? "Unweld" : "Weld";
    this.element("close").textContent = swing.anchor ? "Open the loop" : "Close a loop";
    this.show();
  }

  names() {
    return this.swing.load ? [...this.moved, this.swing.load.name] : this.moved;
  }

  table(id, rows, columns) {
    const table = this.element(id), full = this.swing.robot.coordinates;
    table.replaceChildren();
    const head = table.insertRow();
    for (const name of ["", ...columns]) head.append(made("th", { textContent: name, scope: "col" }));
    return rows.map((name, i) => {
      const row = table.insertRow(), title = id === "J" ? name : full[i];
      row.append(made("th", { textContent: name, scope: "row", title }));
      return columns.map(() => row.insertCell());
    });
  }

  sliders(names) {
    const { swing } = this, head = made("div");
    head.append(...["", "q", "rad", "q̇", "rad/s"].map((textContent) => made("span", { textContent })));
    this.fields = names.map((name, k) => {
      const title = swing.robot.coordinates[k], line = made("div");
      line.append(made("span", { textContent: name, title }));
      const pair = [["q", 3.14], ["qd", 3]].map(([which, limit]) => {
        const field = made("input", { type: "range", min: -limit, max: limit, step: 0.01 }), value = made("output");
        field.setAttribute("aria-label", `${which === "q" ? "position" : "rate"} of ${title}`);
        field.disabled = which === "q" && k >= 6 && swing.robot.ball >= 0; // a part of a quaternion
        field.oninput = () => this.slide(which, k, Number(field.value));
        line.append(field, value);
        return [field, value];
      });
      return { line, pair };
    });
    this.element("state").replaceChildren(head, ...this.fields.map(({ line }) => line));
  }

  slide(which, k, value) {
    const { swing } = this;
    this.story = null;
    if (which === "q" && k < 6) swing.target[k] = value;
    if (which === "q" && k < 6 && this.running && swing.motors === "hold") return;
    swing[which][k] = value;
    swing.settle();
    swing.open();
    this.show();
  }

  buttons() {
    const terms = this.element("terms");
    terms.replaceChildren();
    this.small = this.names().map((name, k) => {
      const n = this.swing.robot.n, button = made("button"), canvas = made("canvas", { width: n, height: n });
      button.append(canvas, name.replace("_link", "").replaceAll("_", " "));
      button.onclick = () => ((this.link = name), this.show());
      terms.append(...(k ? [document.createTextNode("‡")] : []), button);
      return [name, button, canvas.getContext("2d")];
    });
  }

  // Colours go with the cube root, so that small entries are seen beside large ones.
  colour(x, largest) {
    return `rgba(${this.tones[Number(x > 0)]}, ${(0.65 * Math.cbrt(Math.abs(x) / largest)).toFixed(3)})`;
  }

  // Fills cells with a matrix whose rows and columns are those of some numbers.
  fill(id, A, rows, columns) {
    const largest = Math.max(FAINT, ...A.map(Math.abs));
    for (const [i, line] of this.cells[id].entries())
      for (const [j, cell] of line.entries()) {
        const [a, b] = [rows.indexOf(i), columns.indexOf(j)], x = a < 0 || b < 0 ? null : A[a * columns.length + b];
        const size = Math.abs(x), number = size < 0.005 ? "0" : x?.toFixed(size < 10 ? 2 : 1);
        const text = x === null ? "" : number;
        if (cell.textContent !== text) cell.textContent = text;
        cell.className = x === null ? "none" : "";
        cell.style.backgroundColor = x === null ? "" : this.colour(x, largest);
      }
  }

  // Shows the present numbers.
  show() {
    const { swing } = this, { q, qd, robot } = swing, n = robot.n, all = range(n);
    this.tones = ["--minus", "--plus"].map((name) => this.style.getPropertyValue(name));
    const { M, C, g } = robot.dynamics(q, qd), own = robot.contribution(this.link, q, qd);
    this.fill("M", M, all, all);
    this.fill("C", C, all, all);
    this.fill("g", g, all, [0]);
    this.fill("J", own.J, range(6), own.path);
    this.fill("Mi", own.M, own.path, own.path);
    for (const place of document.querySelectorAll(".link")) place.textContent = this.link;
    const largest = Math.max(...M.map(Math.abs));
    for (const [name, button, context] of this.small) {
      const { path, M } = robot.contribution(name, q, qd);
      button.setAttribute("aria-pressed", name === this.link);
      context.clearRect(0, 0, n, n);
      for (const [k, x] of M.entries()) {
        context.fillStyle = this.colour(x, largest);
        context.fillRect(path[k % path.length], path[Math.floor(k / path.length)], 1, 1);
      }
    }
    const held = this.running && swing.motors === "hold";
    for (const [k, { pair }] of this.fields.entries()) {
      const [[position, ofq], [rate, ofqd]] = pair;
      if (position !== document.activeElement || !held) position.value = held && k < 6 ? swing.target[k] : q[k];
      rate.value = qd[k];
      [ofq.textContent, ofqd.textContent] = [brief(q[k]), brief(qd[k])];
    }
    this.account();
  }

  account() {
    const { ledger, robot, q, qd } = this.swing, { kinetic, potential } = robot.energies(q, qd);
    const lines = [
      ["kinetic", kinetic, "kinetic"], ["potential", potential, "potential"], ["sum", kinetic + potential, "total"],
      ["at the start", ledger.start], ["+ work of the motors", ledger.work], ["− heat of impacts", ledger.lost],
      ["+ brought by loads", ledger.exchanged], ["unaccounted for", this.swing.unaccounted],
    ];
    const table = this.element("ledger");
    while (table.rows.length < lines.length) for (const row of [table.insertRow()]) row.append(made("td"), made("td"));
    for (const [k, [name, value, tone]] of lines.entries()) {
      const [label, number] = table.rows[k].cells;
      if (!label.textContent) label.innerHTML = `${tone ? `<i style="background: var(--${tone})"></i>` : ""}${name}`;
      number.textContent = `${k === lines.length - 1 ? value.toExponential(0) : value.toFixed(3)} J`;
    }
    this.plot();
  }

  // The energies, less what each was when the plot begins.
  plot() {
    const canvas = this.element("plot"), context = canvas.getContext("2d"), { past } = this;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth * scale, canvas.clientHeight * scale];
    Object.assign(canvas, { width, height });
    if (past.length < 2) return;
    const lines = [0, 1, 2].map((k) => past.map((sample) => sample[k + 1] - past[0][k + 1]));
    const [low, high] = [Math.min(-0.1, ...lines.flat()), Math.max(0.1, ...lines.flat())];
    for (const [k, name] of ["--kinetic", "--potential", "--total"].entries()) {
      context.beginPath();
      context.strokeStyle = this.style.getPropertyValue(name);
      context.lineWidth = 1.5 * scale;
      for (const [i, x] of lines[k].entries())
        context.lineTo(width * (1 + (past[i][0] - past.at(-1)[0]) / 8), 3 + ((height - 6) * (high - x)) / (high - low));
      context.stroke();
    }
  }

  async same() {
    const { swing } = this, found = swing.digests().catch(() => ["this browser has no digests for files"]);
    this.element("python").textContent = swing.lines();
    this.element("digests").textContent = (await found).join("\n");
    for (const id of ["python", "digests"]) this.element(id).hidden = false;
  }

  // Moves on by some seconds, or as many as there is time for.
  advance(seconds, budget = Infinity) {
    const { swing } = this, end = swing.t + seconds - STEP / 2, begun = performance.now();
    while (swing.t < end && performance.now() - begun < budget) swing.step(STEP);
    const { kinetic, potential } = swing.robot.energies(swing.q, swing.qd);
    this.past.push([swing.t, kinetic, potential, kinetic + potential]);
    while (this.past[0][0] < swing.t - 8) this.past.shift();
  }

  frame(now) {
    const passed = Math.min(0.04, (now - (this.then ?? now)) / 1000);
    this.then = now;
    if (this.story) this.narrate();
    try {
      if (this.running && passed) this.advance(passed, BUDGET);
      this.view?.draw(this.swing, this.style);
    } catch (error) {
      this.story = null;
      this.run(false);
      this.show();
      this.say(`The motion is paused: ${error.message}. Set smaller rates and press “Run”, or press “Reset”.`);
    }
    if (this.running && now - (this.shown ?? 0) > 80) {
      this.shown = now;
      this.show();
    }
    requestAnimationFrame((time) => this.frame(time));
  }

  narrate() {
    const [next] = this.story, first = this.story.length === STORY.length;
    if (!next) this.story = null;
    else if (first || this.swing.t >= next[0]) {
      next[1](this);
      if (next[2]) this.say(next[2]);
      this.story.shift();
    }
  }
}

if (globalThis.document) {
  const data = JSON.parse(document.getElementById("data").textContent);
  const bytes = Uint8Array.from(atob(data.module), (letter) => letter.charCodeAt(0));
  globalThis.lab = new Laboratory(data, await Kernels.load(bytes));
  requestAnimationFrame((now) => globalThis.lab.frame(now));
}
